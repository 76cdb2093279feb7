-- work --
-- Begins a transaction that sees what others commit meanwhile.
begin isolation level read committed
