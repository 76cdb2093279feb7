"""What our pages share: markup that escapes by construction, one style, one script, one small server."""
