"""Prints a SAM template as the CloudFormation template that the platform makes
from it, by the translator that the SAM CLI ships and with parameters at their
defaults:

    .cache/venv/bin/python transform.py template.yaml
"""

import json
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file.read())
# Where the code lies is decided by a deploy; the translator wants a place.
template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
json.dump(Translator({}, Parser()).translate(template, {}), sys.stdout)
