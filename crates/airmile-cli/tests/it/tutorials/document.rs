//! The commands of a Markdown document, and the output that it quotes.

use std::path::Path;

/// What a document asks its reader to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A line of a shell, with the lines of output that the document quotes.
    Shell { line: String, quoted: Vec<String> },
    /// A Python program.
    Python(String),
}

impl Step {
    /// What rules are compared with.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Shell { line, .. } => line,
            Self::Python(program) => program,
        }
    }
}

/// The steps of a document, in order: code blocks without a language or with `sh` are lines of a
/// shell, a block `text` quotes the output of the line before it, and code in a sentence counts if
/// it is a command of airmile with arguments.
pub(super) fn steps(path: &Path) -> Vec<Step> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut steps: Vec<Step> = Vec::new();
    for (n, part) in text.split("```").enumerate() {
        if n % 2 == 0 {
            steps.extend(in_sentences(part));
            continue;
        }
        let (language, body) = part.split_once('\n').unwrap();
        match language.trim() {
            "" | "sh" => steps.extend(shell(body)),
            "python" => steps.push(Step::Python(body.to_owned())),
            "text" => {
                let Some(Step::Shell { quoted, .. }) = steps.last_mut() else {
                    panic!("{}: output without a command: {body}", path.display());
                };
                let lines = body.lines().map(str::trim_end);
                quoted.extend(lines.filter(|line| !matches!(*line, "" | "...")).map(Into::into));
            }
            other => panic!("{}: a code block of `{other}`, which is not run", path.display()),
        }
    }
    steps
}

/// Lines of a block, without comments; a backslash at the end continues a line.
fn shell(body: &str) -> impl Iterator<Item = Step> {
    let joined = body.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.split(" # ").next().unwrap_or_default().trim());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| Step::Shell { line: line.to_owned(), quoted: Vec::new() })
        .collect::<Vec<_>>()
        .into_iter()
}

fn in_sentences(text: &str) -> impl Iterator<Item = Step> {
    text.split('`').skip(1).step_by(2).filter_map(|code| {
        let line = code.split_whitespace().collect::<Vec<_>>().join(" ");
        let own = line.strip_prefix("sudo ").unwrap_or(&line).strip_prefix("airmile ")?;
        own.contains(' ').then(|| Step::Shell { line, quoted: Vec::new() })
    })
}

#[test]
fn commands_and_quoted_output_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.md");
    let text = "Try `airmile lab run\na -o b`; `airmile radio` is a name, `x` is not.\n\n```\nairmile \
                a \\\n  b   # why\n\n# all\nairmile c\n```\n\n```text\nOne  \n...\nTwo\n```\n\n\
                ```python\nprint(1)\n```\n";
    std::fs::write(&path, text).unwrap();
    let line = |line: &str, quoted: &[&str]| Step::Shell {
        line: line.into(),
        quoted: quoted.iter().map(|&one| one.to_owned()).collect(),
    };
    let expected = [
        line("airmile lab run a -o b", &[]),
        line("airmile a    b", &[]),
        line("airmile c", &["One", "Two"]),
        Step::Python("print(1)\n".into()),
    ];
    assert_eq!(steps(&path), expected);
}
