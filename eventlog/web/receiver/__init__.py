"""A receiver for tests and demos: it plays the engine, keeps what came and shows it in a page."""
