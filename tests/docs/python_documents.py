#!/usr/bin/env python3
"""Write the types of Python's documents (python/airmile/documents) from docs/schema.

python3 tests/docs/python_documents.py [--check]; with --check only compares.
"""

import json
import sys
import textwrap
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
OUT = REPOSITORY / "python/airmile/documents"
SCHEMAS = ["diagnose", "compare"]
# Each module, with the definitions that begin it; it also has those that only they use.
MODULES = {
    "_files": ["FileReport", "ClockReport", "ApplicationSummary", "Missing", "ServingCell"],
    "_transfers": ["SessionVerdict", "TransferDiagnosis", "EvidenceCounts", "EcnReport"],
    "_pages": ["Page", "PlayerSession", "ComparedPage"],
}
WIDTH = 100
HEAD = '''"""{title}

Written from docs/schema by tests/docs/python_documents.py; do not edit.
"""

from __future__ import annotations

'''
TITLES = {
    "_files": "Files, logs of applications, clocks.",
    "_transfers": "Verdicts on transfers.",
    "_pages": "Pages and players.",
}
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def main() -> int:
    definitions = {}
    for name in SCHEMAS:
        definitions |= json.loads((REPOSITORY / f"docs/schema/{name}.json").read_text())["$defs"]
    files = written(definitions)
    if "--check" in sys.argv[1:]:
        stale = [name for name, text in files.items() if (OUT / name).read_text() != text]
        if stale:
            print(f"not as docs/schema has it: {', '.join(stale)}; run {Path(__file__).name}")
        return bool(stale)
    for name, text in files.items():
        (OUT / name).write_text(text)
    return 0


def written(definitions: dict) -> dict[str, str]:
    module_of: dict[str, str] = {}
    for module, roots in MODULES.items():
        for name in reached(roots, definitions):
            module_of.setdefault(name, module)
    files = {}
    for module in MODULES:
        own = sorted(name for name, where in module_of.items() if where == module)
        aliases = [name for name in own if not is_object(definitions[name])]
        classes = [name for name in own if is_object(definitions[name])]
        imports = {}
        for name in classes:
            for used in references(definitions[name]):
                if module_of[used] != module:
                    imports.setdefault(module_of[used], set()).add(used)
        text = HEAD.format(title=TITLES[module])
        text += "from dataclasses import dataclass\n"
        if aliases:
            text += "from typing import Literal, TypeAlias\n"
        text += "\n"
        for other, names in sorted({**imports, "_part": {"Part"}}.items()):
            text += imported(f"airmile.documents.{other}", sorted(names))
        text += "\n" + "\n".join(alias(name, definitions[name]) for name in aliases)
        text += "".join(class_of(name, definitions[name], definitions) for name in classes)
        files[f"{module}.py"] = text
    text = '"""The parts of documents, typed: what :class:`airmile.Diagnosis` and others give.\n\n'
    text += "A part has the fields of the document's schema (docs/schema). Times that end in `_us` are\n"
    text += "microseconds since the Unix epoch, or by a log's own clock if it has no day.\n"
    text += '"""\n\n'
    sources = {module: [] for module in MODULES}
    for name, module in module_of.items():
        sources[module].append(name)
    for module, names in sorted({**sources, "_part": ["Part"]}.items()):
        text += imported(f"airmile.documents.{module}", sorted(names))
    names = sorted([*module_of, "Part"])
    text += "\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n"
    files["__init__.py"] = text
    return files


def imported(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")\n"


def references(schema: object) -> set[str]:
    if isinstance(schema, dict):
        found = {schema["$ref"].rsplit("/", 1)[1]} if "$ref" in schema else set()
        return found.union(*(references(value) for value in schema.values()))
    if isinstance(schema, list):
        return set().union(*(references(value) for value in schema))
    return set()


def reached(names: list[str], definitions: dict) -> list[str]:
    found: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting.extend(sorted(references(definitions[name])))
    return found


def is_object(schema: dict) -> bool:
    return schema.get("type") == "object"


def alias(name: str, schema: dict) -> str:
    words = [choice["const"] for choice in schema.get("oneOf", [])]
    if not words:
        return f"{name}: TypeAlias = {SCALARS[schema['type']]}\n"
    items = ", ".join(f'"{word}"' for word in words)
    line = f"{name}: TypeAlias = Literal[{items}]\n"
    if len(line) <= WIDTH:
        return line
    line = f"    {items}\n"
    if len(line) <= WIDTH:
        return f"{name}: TypeAlias = Literal[\n{line}]\n"
    return f"{name}: TypeAlias = Literal[\n" + "".join(f'    "{word}",\n' for word in words) + "]\n"


def class_of(name: str, schema: dict, definitions: dict) -> str:
    text = f"\n\n@dataclass(frozen=True, repr=False)\nclass {name}(Part):\n"
    text += docstring(schema.get("description", name))
    for field, kind in schema["properties"].items():
        nullable = field not in schema.get("required", [])
        text += f"\n    {field}: {type_of(kind, nullable)}\n"
        text += docstring(kind.get("description") or definitions_doc(kind, definitions))
    return text


def definitions_doc(kind: dict, definitions: dict) -> str:
    used = sorted(references(kind))
    return definitions[used[0]].get("description", "") if used else ""


def docstring(text: str) -> str:
    """The first sentence, or as much of it as a line holds."""
    text = " ".join(text.split()).replace("\\", "")
    room = WIDTH - len('    """"""')
    if len(text) > room:
        text = text.split(". ")[0].rstrip(".") + "."
    if len(text) > room:
        first, *rest = textwrap.wrap(text, WIDTH - 7)
        lines = "".join(f"    {line}\n" for line in textwrap.wrap(" ".join(rest), WIDTH - 4))
        return f'    """{first}\n{lines}    """\n' if rest else f'    """{first}\n    """\n'
    return f'    """{text}"""\n' if text else ""


def type_of(schema: dict, nullable: bool = False) -> str:
    kind = schema.get("type")
    if "$ref" in schema:
        made = schema["$ref"].rsplit("/", 1)[1]
    elif "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
        (made,) = [type_of(choice) for choice in choices]
        nullable = True
    elif isinstance(kind, list):
        (word,) = [word for word in kind if word != "null"]
        return type_of({**schema, "type": word}, True)
    elif kind == "array":
        made = f"list[{type_of(schema['items'])}]"
    elif kind == "object":
        values = schema.get("additionalProperties") or next(
            iter(schema["patternProperties"].values())
        )
        made = f"dict[str, {type_of(values)}]"
    else:
        made = SCALARS[kind]
    return f"{made} | None" if nullable else made


if __name__ == "__main__":
    sys.exit(main())
