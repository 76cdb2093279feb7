begin {leadership}.hold; end;
/
