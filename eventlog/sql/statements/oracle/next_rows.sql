offset :skip rows fetch next :most rows only
/
