//! Checks that the schemas of the lab's documents match the code. `AIRMILE_UPDATE=1 make test
//! ONLY="--test it documents"` updates them.

use std::path::PathBuf;

#[test]
fn schemas_are_current() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for (name, schema) in airmile_lab::schemas() {
        let path = docs.join(format!("{name}.json"));
        let expected = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("AIRMILE_UPDATE").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expected,
            "{} is not current: run `AIRMILE_UPDATE=1 make test ONLY=\"--test it documents\"`",
            path.display()
        );
    }
}
