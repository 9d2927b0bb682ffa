//! The tool's figures against those that an independent script works out from the same generated lines.
#![allow(missing_docs)]

use std::{
    path::Path,
    process::{Command, Output},
};

#[test]
fn an_independent_script_agrees() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut script = Command::new("python3");
    script.arg(root.join("ci/replay-check.py")).arg(env!("CARGO_BIN_EXE_tollgate"));
    let Output { status, stdout, stderr } = script.output().expect("python3");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && out.contains(" passed, 0 failed"), "{out}{err}");
}
