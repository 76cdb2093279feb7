from eventlog.cli import main

main()
