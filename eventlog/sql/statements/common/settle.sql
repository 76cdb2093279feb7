delete from {batch} where batch = :batch
/
