//! `tollgate completions` and `tollgate man`: what the argument parser knows, for shells and for readers.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{args::Cli, failure::Failure};

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tollgate", &mut script);
    Ok(write(&script)?)
}

/// Prints the manual page of a command, or of the tool.
pub(crate) fn man(command: Option<&str>) -> Result<(), Failure> {
    let mut tool = Cli::command();
    tool.build();
    let source = format!("tollgate {}", tool.get_version().unwrap_or_default());
    let (title, about) = match command.and_then(|name| tool.find_subcommand(name).cloned()) {
        Some(command) => (format!("tollgate-{}", command.get_name()), command),
        None => ("tollgate".to_owned(), tool),
    };
    let mut page = Vec::new();
    Man::new(about).title(title).source(source).render(&mut page)?;
    Ok(write(&page)?)
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
