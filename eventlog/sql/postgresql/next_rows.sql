limit :rows offset :skip
/
