"""Validates documents (.json or .toml) against a JSON Schema: validate.py SCHEMA.json DOCUMENT..."""

import json
import sys
import tomllib

import jsonschema


def document(path):
    with open(path, "rb") as file:
        return tomllib.load(file) if path.endswith(".toml") else json.load(file)


def main(schema, *paths):
    schema = document(schema)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    is_valid = True
    for path in paths:
        error = jsonschema.exceptions.best_match(validator(schema).iter_errors(document(path)))
        print(f"{path}: {f'{error.json_path}: {error.message}' if error else 'valid'}")
        is_valid &= error is None
    return 0 if is_valid else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
