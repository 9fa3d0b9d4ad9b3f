//! `airmile qcut` as a program of its own, for routers.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    program::main().into()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    airmile_host::command::to_stderr(airmile_qcut::NEEDS_LINUX);
    ExitCode::from(3)
}

#[cfg(target_os = "linux")]
mod program {
    use airmile_host::command::{Global, to_stderr};
    use airmile_qcut::args::QcutCommand;
    use airmile_qcut::command::{CommandError, run};
    use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser};

    /// Version, commit where it was built from a checkout, features.
    const VERSION: &str = if cfg!(feature = "view") {
        concat!(env!("AIRMILE_VERSION"), " features: view")
    } else {
        concat!(env!("AIRMILE_VERSION"), " features: none")
    };

    /// Keep the uplink queue of an LTE modem short, so that an upload delays other traffic less.
    #[derive(Debug, Parser)]
    #[command(name = "airmile-qcut", version = VERSION, propagate_version = true, arg_required_else_help = true)]
    struct Program {
        /// Print JSON instead of tables
        #[arg(long, global = true)]
        json: bool,
        /// Print no progress and no warnings
        #[arg(short, long, global = true)]
        quiet: bool,
        #[command(subcommand)]
        command: QcutCommand,
    }

    impl Program {
        /// Nothing here has colours or more to print.
        const fn global(&self) -> Global {
            let (json, quiet) = (self.json, self.quiet);
            Global { json, quiet, verbose: 0, color: ColorChoice::Auto }
        }
    }

    /// Runs the command; gives the exit status: 0 done, 2 usage, 3 could not run.
    pub fn main() -> u8 {
        let parsed = own_name(Program::command()).try_get_matches();
        match parsed.and_then(|matches| Program::from_arg_matches(&matches)) {
            Ok(program) => match run(&program.global(), &program.command, &[]) {
                Ok(status) => status,
                Err(CommandError::Output(error))
                    if error.kind() == std::io::ErrorKind::BrokenPipe =>
                {
                    0
                }
                Err(error) => {
                    // Advice has the name of this program.
                    let error_text = error.to_string().replace("airmile qcut", "airmile-qcut");
                    to_stderr(&format!("airmile-qcut: {error_text}"));
                    if matches!(error, CommandError::Option(_)) { 2 } else { 3 }
                }
            },
            Err(told) => {
                // Help and version come here, too.
                let _ = told.print();
                u8::try_from(told.exit_code()).unwrap_or(2)
            }
        }
    }

    /// Examples with the name of this program.
    fn own_name(command: clap::Command) -> clap::Command {
        command.mut_subcommands(|each| {
            let help = each.get_after_help().map(ToString::to_string).unwrap_or_default();
            each.after_help(help.replace("airmile qcut", "airmile-qcut"))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn arguments_are_sound_and_examples_have_the_name() {
            let command = own_name(Program::command());
            command.clone().debug_assert();
            for mut each in command.get_subcommands().cloned() {
                let help = each.render_long_help().to_string();
                assert!(!help.contains("airmile qcut "), "{help}");
            }
        }
    }
}
