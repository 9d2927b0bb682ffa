//! The library under test, and the C compiler.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The programs must be clean.
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The folder of this package.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder that the library under test lies in.
pub(crate) fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| env::var_os("TOLLGATE_LIBRARY_DIR").map_or_else(build, PathBuf::from))
}

/// The features that the library under test was built with.
pub(crate) fn features() -> String {
    env::var("TOLLGATE_LIBRARY_FEATURES").unwrap_or_else(|_| "std heap shards shm".into())
}

/// Whether it was built with this one.
pub(crate) fn has(feature: &str) -> bool {
    features().split(' ').any(|it| it == feature)
}

/// Builds the library beside the tests, as they are built.
fn build() -> PathBuf {
    let test = env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let profile = match folder.file_name().and_then(OsStr::to_str).unwrap() {
        "debug" => "dev",
        other => other,
    };
    let arguments = ["build", "--quiet", "--package", "tollgate-ffi", "--profile", profile];
    run(Command::new(env!("CARGO")).args(arguments).current_dir(root()));
    folder.to_owned()
}

/// What a command prints, which must succeed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// How a program gets the library.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link {
    Static,
    Shared,
}

/// Compiles a program, in C or C++.
pub(crate) fn compile(source: &Path, link: Link) -> PathBuf {
    // Under a name of its own each time: another test may run the same one at this moment.
    static COMPILED: AtomicUsize = AtomicUsize::new(0);
    let (name, number) = (source.file_stem().unwrap().display(), COMPILED.fetch_add(1, Ordering::Relaxed));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{link:?}-{number}"));
    let mut command = if source.extension().is_some_and(|end| end == "c") {
        let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
        command.args(["-std=c99", "-D_GNU_SOURCE"]);
        command
    } else {
        let mut command = Command::new(env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        command.args(["-std=c++14", "-fno-exceptions"]);
        command
    };
    command.args(STRICT).arg(source).args(["-g", "-pthread", "-o"]).arg(&program);
    command.arg("-I").arg(root().join("include"));
    match link {
        Link::Static => command.arg(library().join("libtollgate.a")).args(["-ldl", "-lm"]),
        Link::Shared => {
            command.arg(library().join("libtollgate.so")).arg("-ldl");
            command.arg(format!("-Wl,-rpath,{}", library().display()))
        }
    };
    run(&mut command);
    program
}

/// Compiles a program of `tests/c`, or of `tests/cpp`, and runs it.
pub(crate) fn compile_and_run(name: &str, link: Link, arguments: &[&OsStr]) -> String {
    let in_c = root().join("tests/c").join(name).with_extension("c");
    let in_cpp = root().join("tests/cpp").join(name).with_extension("cpp");
    let program = compile(if in_c.exists() { &in_c } else { &in_cpp }, link);
    // A build folder has no name with the soname's number.
    run(Command::new(program).args(arguments).env("LD_LIBRARY_PATH", soname_folder()))
}

/// A folder in which the library has its soname.
fn soname_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soname");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(library().join("libtollgate.so"), folder.join("libtollgate.so.0")).unwrap();
        folder
    })
}
