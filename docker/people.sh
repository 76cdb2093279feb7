#!/bin/sh
# Hires, renames and sends away, a change every two seconds.
set -eu

change() {
    psql --quiet --no-psqlrc --command "$1" || echo "the database is away; trying again" >&2
    sleep 2
}

while true; do
    change "insert into indirect.usr (fname, lname, photo) values ('Jack', 'Frost', '\xaaaa')"
    change "update indirect.usr set fname = 'John', lname = 'Doe' where idu = (select max(idu) from indirect.usr)"
    change "delete from indirect.usr where idu <= (select max(idu) - 10 from indirect.usr)"
done
