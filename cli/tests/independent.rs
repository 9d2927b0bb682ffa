//! The tool's figures against those that an independent script works out from the same generated lines.
#![allow(missing_docs)]

use std::{
    path::Path,
    process::{Command, Output},
};

/// Runs a script of `ci/` against the tool.
fn agrees(script: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new("python3");
    command.arg(root.join("ci").join(script)).arg(env!("CARGO_BIN_EXE_tollgate"));
    let Output { status, stdout, stderr } = command.output().expect("python3");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && out.contains(" passed, 0 failed"), "{out}{err}");
}

#[test]
fn an_independent_script_agrees_with_the_replay() {
    agrees("replay-check.py");
}

#[test]
fn an_independent_script_agrees_with_the_plan() {
    agrees("plan-check.py");
}
