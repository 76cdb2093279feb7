insert into {batch} (batch, epoch, content) values (:batch, :epoch, :content)
/
