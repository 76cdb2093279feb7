offset :skip rows fetch next :rows rows only
/
