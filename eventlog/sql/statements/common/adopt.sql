update {batch} set epoch = :epoch
/
