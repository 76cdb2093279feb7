create table if not exists document (
    id integer primary key autoincrement,
    at text not null,
    size integer not null,
    body blob not null,
    fault text not null,
    level text not null,
    reply blob not null
);

create table if not exists event (
    document integer not null references document (id) on delete cascade,
    part integer not null,
    operation text not null,
    class text not null,
    key text not null,
    association text not null,
    event_id text,
    primary key (document, part)
) without rowid;

create index if not exists document_of_level on document (level);
create index if not exists event_of_class on event (class, document);
create index if not exists event_of_operation on event (operation, document);
create index if not exists event_of_key on event (key, document);
create index if not exists event_of_object on event (association, document);
