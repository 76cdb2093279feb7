limit :most offset :skip
/
