select {leadership}.held from dual
/
