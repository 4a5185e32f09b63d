"""Validates XML by a schema: python xsd.py SCHEMA FILE... Needs lxml."""

import sys

from lxml import etree

schema = etree.XMLSchema(etree.parse(sys.argv[1]))
for name in sys.argv[2:]:
    document = etree.parse(name)
    if not schema.validate(document):
        sys.exit(f"{name}: {schema.error_log}")
