"""What our pages share: markup that escapes by construction, one style, one script, a small server; and the
pages of the publisher (`monitor`) and of the receiver."""
