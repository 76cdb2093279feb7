select batch, epoch, content from {batch} order by batch
/
