//! Generated documents match the code: schemas and record tables. `AIRMILE_UPDATE=1 make test
//! ONLY="--test it documents"` writes them again.

use std::path::PathBuf;

use airmile::model::flow::PacketRow;
use airmile::model::{Column, ColumnType, Record};

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a file with its expected content, or writes it.
fn check(path: PathBuf, expected: &str) {
    if std::env::var_os("AIRMILE_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is not current: run `AIRMILE_UPDATE=1 make test ONLY=\"--test it documents\"`",
        path.display()
    );
}

#[test]
fn schemas_are_current() {
    for (name, schema) in airmile::schemas() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        check(docs().join(format!("schema/{name}.json")), &text);
    }
}

const MARK: &str = "<!-- What follows is made from the record definitions. -->\n";

#[test]
fn record_tables_are_current() {
    let path = docs().join("records.md");
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let (head, _) = found.split_once(MARK).unwrap_or((&found, ""));
    let mut expected = head.to_owned() + MARK;
    Record::tables().into_iter().for_each(|of| expected.push_str(&table(of)));
    expected.push_str("\n# Tables of `airmile packets`\n");
    PacketRow::tables().into_iter().for_each(|of| expected.push_str(&table(of)));
    check(path, &expected);
}

fn table((name, doc, columns): (&str, &str, Vec<Column>)) -> String {
    let mut text = format!("\n## `{name}`\n\n{}\n\n", one_line(doc));
    text.push_str("| column | type | may be null | meaning |\n|---|---|---|---|\n");
    columns.iter().for_each(|column| text.push_str(&row(column)));
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(column: &Column) -> String {
    let kind = match column.kind {
        ColumnType::Int => "integer",
        ColumnType::Float => "number",
        ColumnType::Bool => "boolean",
        ColumnType::Text => "text",
        ColumnType::Bytes => "bytes (hexadecimal)",
    };
    let null = if column.nullable { "yes" } else { "" };
    format!("| `{}` | {kind} | {null} | {} |\n", column.name, one_line(column.doc))
}
