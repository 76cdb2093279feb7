"""An example or two of each command, at the end of its help."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("eventlog demo", "eventlog demo --fast --without-spark"),
    "install": (
        "eventlog install --url postgresql://owner@localhost/hr",
        "eventlog install --sql --dialect oracle --log-table idm.eventlog > install.sql",
        "eventlog install --sql --dialect oracle --log-table idm.eventlog --grants publisher > grants.sql",
    ),
    "uninstall": ("eventlog uninstall", "eventlog uninstall --sql --dialect postgresql"),
    "track": (
        "eventlog track hr.employee",
        "eventlog track hr.employee --insert 1 --update 2 --without photo",
        "eventlog track hr.employee --update 2 --child hr.phone.number",
    ),
    "untrack": ("eventlog untrack hr.employee",),
    "resync": ("eventlog resync hr.employee", "eventlog resync hr.employee --where \"site = 'Bonn'\""),
    "check": ("eventlog check", "eventlog check --write-tables tables.toml"),
    "run": (
        "eventlog run --sink files --files-folder out",
        "eventlog run --sink http --http-url https://engine.example/xds --monitor-port 9780",
        "eventlog run --once",
    ),
    "pause": ("eventlog pause --because 'the engine moves'",),
    "resume": ("eventlog resume", "eventlog resume --table hr.employee"),
    "preview": ("eventlog preview --pretty",),
    "explain": (
        "eventlog explain",
        "eventlog explain 4711 4712",
        "eventlog explain --key idu=1",
        "eventlog explain --tables tables.toml log.csv",
        "eventlog explain --tables tables.toml - < log.csv",
    ),
    "audit": (
        "eventlog audit --delivered documents/",
        "eventlog audit --delivered documents/ --state -o report.html",
        "eventlog audit --delivered documents/ --record",
        "eventlog audit --delivered received.sqlite --object usr idu=1",
        "eventlog audit --delivered kafka:hr.changes --json",
    ),
    "status": ("eventlog status", "eventlog status --json"),
    "errors": ("eventlog errors --table usr", "eventlog errors 17 --with-document"),
    "history": ("eventlog history", "eventlog history --json"),
    "redrive": ("eventlog redrive 17", "eventlog redrive --because 'time-out'"),
    "retry": ("eventlog retry 17", "eventlog retry --all"),
    "skip": ("eventlog skip 17 --because 'a test row'",),
    "purge": ("eventlog purge --older-than 30d",),
    "deliver": ("eventlog deliver --sink http --http-url https://engine.example/xds documents.xml",),
    "receive": ("eventlog receive --port 8780", "eventlog receive --answer retry"),
    "convert": (
        "eventlog convert log.csv documents.xml --tables tables.toml",
        "eventlog convert --from qlik-table --to changes --tables tables.toml usr__ct.csv",
        "eventlog convert --from gbase --to changes --follow capture.bin",
    ),
    "compare": (
        "eventlog compare monday.csv tuesday.csv --to xds --tables tables.toml --table usr",
        "eventlog compare usr.parquet hr.usr --url postgresql://reader@localhost/hr --to changes",
        "eventlog compare usr.parquet hr.usr --keep usr.parquet --url mariadb://reader@db/hr -o new.xml",
        "eventlog compare hr.usr hr.usr --url postgresql://a@old/hr --url-b mariadb://b@new/hr -o diff.jsonl",
    ),
    "backlog": (
        "eventlog backlog --from log --to xds --tables tables.toml -o out logs/",
        "eventlog backlog --from log --to xds --url postgresql://owner@localhost/hr -o out --finish",
    ),
    "apply": (
        "eventlog apply --to-url postgresql://owner@localhost/dwh --tables tables.toml changes.jsonl",
        "eventlog apply --from qlik-table --to-lake delta:s3://lake/hr --follow usr__ct.csv",
    ),
    "rounds": (
        "eventlog rounds delta:s3://lake/hr --source qlik-table",
        "eventlog rounds delta:s3://lake/hr --source qlik-table --against postgresql://reader@localhost/hr",
    ),
    "capture": (
        "eventlog capture --table hr:owner.usr --jar jdbc.jar,bson.jar 'informix://cdc@db1:9088/hr?server=ol_hr'",
        "eventlog capture --table owner.usr --state usr.state 'gbase://cdc@db1:9088/hr?server=gbase01'",
    ),
    "import-config": ("eventlog import-config driver.xml > eventlog.toml",),
    "bench": ("eventlog bench formats",),
}


def shown(command: str) -> str:
    """Return the examples of a command as its help ends with them."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])))
