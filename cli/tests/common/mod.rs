//! Running the tool as a user does. Each test file uses its part of this.
#![allow(dead_code)]

use std::{
    env, fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
};

/// What a run printed, and how it ended.
pub(crate) struct Ran {
    /// The exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

/// The tool, ready to be given arguments; nothing of the tester's terminal reaches it.
pub(crate) fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("NO_COLOR").env("TERM", "xterm").stdin(Stdio::null());
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data"));
    command
}

/// The tool, which minds Ctrl-C even if whoever runs the tests in the background does not.
pub(crate) fn interruptible() -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_tollgate")]);
    command
}

/// Runs the tool with these arguments.
pub(crate) fn run(args: &[&str]) -> Ran {
    tollgate().args(args).output().expect("the tool starts").into()
}

/// Compares with a file in `golden/`; with `TOLLGATE_BLESS` set, writes it instead.
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("TOLLGATE_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap();
    assert_eq!(text, wanted, "differs from {}", path.display());
}

/// Replays `log`, given on standard input, with these options.
pub(crate) fn replay(log: impl AsRef<[u8]>, options: &[&str]) -> Ran {
    let mut command = tollgate();
    command.args(["replay", "-"]).args(options);
    feed(&mut command, log.as_ref())
}

/// Plans for `log`, given on standard input, with these options.
pub(crate) fn plan(log: impl AsRef<[u8]>, options: &[&str]) -> Ran {
    let mut command = tollgate();
    command.args(["plan", "-"]).args(options);
    feed(&mut command, log.as_ref())
}

/// Plans for `log` with these options and reads the JSON.
pub(crate) fn planned(log: impl AsRef<[u8]>, options: &[&str]) -> serde_json::Value {
    let ran = plan(log, &[&["--json"], options].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.out).expect("JSON")
}

/// Runs a command with `log` as its standard input.
pub(crate) fn feed(command: &mut Command, log: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    thread::scope(|scope| {
        // A tool that stops early closes its end: then the rest of the log is not for it.
        scope.spawn(move || drop(stdin.write_all(log)));
        child.wait_with_output().expect("the tool ends").into()
    })
}

/// Replays `log` with these options and reads the JSON.
pub(crate) fn json(log: impl AsRef<[u8]>, options: &[&str]) -> serde_json::Value {
    let ran = replay(log, &[&["--json"], options].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.out).expect("JSON")
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}
