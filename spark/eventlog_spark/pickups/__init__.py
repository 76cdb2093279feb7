"""A live log as a stream: an offset is the number of a pick-up, frozen before anybody hears of it."""
