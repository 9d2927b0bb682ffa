//! How regions are made and attached to, and every reason to refuse one.

use std::{
    fs::{self, File, OpenOptions},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::{PermissionsExt, symlink},
    },
    path::PathBuf,
    thread,
    time::Duration,
};

use tollgate::{
    Algorithm, Clock, Config, ConfigError, Gcra, Log, LogConfig, Nanos, PlaceError, Rule, WhenFull, Window,
    shared::{Field, Region, RegionBuilder, SharedError, System, Time, inspect, inspect_fd, unlink},
};

use crate::memory::Shared;

const SECOND: Duration = Duration::from_secs(1);
const NOW: Nanos = Nanos::from_secs(7);

fn log(limit: u64) -> LogConfig {
    Log::builder(limit, SECOND).config().unwrap()
}

fn builder() -> RegionBuilder<LogConfig> {
    Region::builder(log(5)).limiters(3).keys(20)
}

/// A name of its own for each test, removed at its end.
struct Name(PathBuf);

impl Name {
    fn new(test: &str) -> Self {
        Self(std::env::temp_dir().join(format!("tollgate-{test}-{}", std::process::id())))
    }
}

impl AsRef<std::path::Path> for Name {
    fn as_ref(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if self.0.symlink_metadata().is_ok() {
            fs::remove_file(&self.0).expect("made by the test");
        }
    }
}

fn errno(result: Result<impl Sized, SharedError>) -> (&'static str, i32) {
    match result.map(|_| ()) {
        Err(SharedError::System { call, errno }) => (call, errno),
        other => panic!("{other:?}"),
    }
}

fn error(result: Result<impl Sized, SharedError>) -> SharedError {
    result.map(|_| ()).unwrap_err()
}

fn field(result: Result<impl Sized, SharedError>) -> Field {
    match error(result) {
        SharedError::Differs { field, got, expected } => {
            assert_ne!(got, expected);
            field
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_region_by_name() {
    let name = Name::new("by-name");
    assert_eq!(errno(builder().attach(&name)), ("open", libc::ENOENT));
    let made = builder().create(&name).unwrap();
    assert_eq!(errno(builder().create(&name)), ("linkat", libc::EEXIST));
    let found = builder().attach(&name).unwrap();
    let opened = builder().open(&name).unwrap();
    assert_eq!(made.bytes() as u64, fs::metadata(&name).unwrap().len());
    assert_eq!(made.limiters(), 3);
    assert_eq!(fs::metadata(&name).unwrap().permissions().mode() & 0o7777, 0o600);

    let now = made.now().unwrap();
    assert!(made.limiter(2).unwrap().try_acquire_at(3, now));
    assert!(found.limiter(2).unwrap().try_acquire_at(2, now));
    assert!(!opened.limiter(2).unwrap().try_acquire_at(1, now));
    assert_eq!(opened.limiter(1).unwrap().usage_at(0, now), Some(0), "another limiter");
    assert!(made.limiter(3).is_none());

    drop(made);
    unlink(&name).unwrap();
    assert_eq!(errno(unlink(&name)), ("unlink", libc::ENOENT));
    assert!(!found.limiter(2).unwrap().try_acquire_at(1, now), "those who have it go on");
    let next = builder().open(&name).unwrap();
    assert!(next.limiter(2).unwrap().try_acquire_at(5, now), "another region of the same name");
}

/// All of the space is taken when a region is made, however large it is.
#[test]
fn the_space_is_taken_at_once() {
    use std::os::unix::fs::MetadataExt;
    let name = Name::new("space");
    let region = builder().keys(30_000).create(&name).unwrap();
    let file = fs::metadata(&name).unwrap();
    assert!(region.bytes() > 9 << 20 && file.len() == region.bytes() as u64, "{} bytes", file.len());
    assert!(file.blocks() * 512 >= file.len(), "{} blocks", file.blocks());
}

#[test]
fn of_many_that_open_at_once_one_makes_it() {
    let name = Name::new("at-once");
    let admitted: u64 = thread::scope(|scope| {
        let hands: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let region = builder().open(&name).unwrap();
                    (0..4).filter(|_| region.limiter(0).unwrap().try_acquire_at(1, NOW)).count() as u64
                })
            })
            .collect();
        hands.into_iter().map(|hand| hand.join().unwrap()).sum()
    });
    assert_eq!(admitted, 5);
}

#[test]
fn one_region_by_descriptor() {
    let (made, file) = builder().memfd("limits").unwrap();
    let found = builder().attach_fd(&file).unwrap();
    assert!(made.limiter(0).unwrap().try_acquire_at(5, NOW));
    assert!(!found.limiter(0).unwrap().try_acquire_at(1, NOW));

    let file = File::from(file);
    for len in [0, made.bytes() as u64 + 1] {
        assert_eq!(file.set_len(len).unwrap_err().raw_os_error(), Some(libc::EPERM), "sealed");
    }
    drop(file);
    assert!(!made.limiter(0).unwrap().try_acquire_at(1, NOW), "a descriptor is not needed any more");
}

#[test]
fn one_region_in_memory_of_the_callers() {
    let bytes = builder().bytes().unwrap();
    let memory = Shared::new(bytes);
    // SAFETY: contract of `place`: used by regions alone.
    let place = |builder: RegionBuilder<LogConfig>| unsafe { builder.place(memory.bytes()) };
    let [first, second] = [(); 2].map(|()| place(builder()).unwrap());
    assert!(first.limiter(0).unwrap().try_acquire_at(5, NOW));
    assert!(!second.limiter(0).unwrap().try_acquire_at(1, NOW));
    assert!(first.keys().unwrap().try_acquire_at(b"a", 5, NOW));
    assert!(!second.keys().unwrap().try_acquire_at(b"a", 1, NOW), "the secret is one");

    let start = memory.bytes().cast::<u8>();
    // SAFETY: contract of `place`: as above.
    let place_in = |at, len| unsafe { builder().place(std::ptr::NonNull::slice_from_raw_parts(at, len)) };
    let short = PlaceError::Short { got: bytes - 1, min: bytes };
    assert_eq!(error(place_in(start, bytes - 1)), SharedError::Memory(short));
    // SAFETY: inside of the memory.
    let unaligned = place_in(unsafe { start.add(8) }, bytes);
    assert_eq!(error(unaligned), SharedError::Memory(PlaceError::Unaligned { past: 8, align: 128 }));

    let other = Shared::new(bytes);
    other.words()[100].store(1, std::sync::atomic::Ordering::Relaxed);
    // SAFETY: contract of `place`: used by regions alone.
    assert_eq!(error(unsafe { builder().place(other.bytes()) }), SharedError::Foreign);
}

/// What other configurations have left there is not looked at as states of this one.
#[test]
fn memory_with_another_region_that_is_in_use_tells_what_differs() {
    let gcra = Region::builder(Gcra::builder(5, SECOND).config().unwrap()).limiters(120);
    let memory = Shared::new(gcra.bytes().unwrap());
    // SAFETY: contract of `place`: used by regions alone.
    let made = unsafe { gcra.place(memory.bytes()) }.unwrap();
    for index in 0..120 {
        assert!(made.limiter(index).unwrap().try_acquire_at(5, NOW));
    }
    // SAFETY: contract of `place`: as above.
    assert_eq!(field(unsafe { builder().place(memory.bytes()) }), Field::Algorithm);
}

/// Zeroed memory, and as many makers as there are words: each finds the words put so far.
#[test]
fn makers_in_one_memory_help_one_another() {
    let memory = Shared::new(builder().bytes().unwrap());
    let admitted: u64 = thread::scope(|scope| {
        let hands: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    // SAFETY: contract of `place`: used by regions alone.
                    let region = unsafe { builder().place(memory.bytes()) }.unwrap();
                    let keys = region.keys().unwrap();
                    (0..4).filter(|_| keys.try_acquire_at(b"key", 1, NOW)).count() as u64
                })
            })
            .collect();
        hands.into_iter().map(|hand| hand.join().unwrap()).sum()
    });
    assert_eq!(admitted, 5, "one secret, one table");
}

#[test]
fn what_differs_is_named() {
    let (_region, file) = builder().memfd("differs").unwrap();
    let differs = |builder: RegionBuilder<LogConfig>| field(builder.attach_fd(&file));
    assert_eq!(differs(Region::builder(log(6)).limiters(3).keys(20)), Field::Rules);
    let capacity = Log::builder(5, SECOND).capacity(6).config().unwrap();
    assert_eq!(differs(Region::builder(capacity).limiters(3).keys(20)), Field::Configuration);
    assert_eq!(differs(builder().limiters(4)), Field::Limiters);
    assert_eq!(differs(builder().keys(200)), Field::Keys);
    assert_eq!(differs(builder().when_full(WhenFull::Refuse)), Field::Kinds);
    assert_eq!(differs(builder().time(Time::Boot)), Field::Kinds);
    let gcra = Region::builder(Gcra::builder(5, SECOND).config().unwrap()).limiters(3).keys(20);
    assert_eq!(field(gcra.attach_fd(&file)), Field::Algorithm);

    let error = error(builder().limiters(4).attach_fd(&file));
    assert_eq!(error.to_string(), "another number of limiters: 0x3, not 0x4");
}

#[test]
fn what_is_no_region_of_ours_is_refused() {
    let name = Name::new("no-region");
    let memfd = || {
        // SAFETY: contract of `memfd_create`: a string.
        let raw = unsafe { libc::memfd_create(c"plain".as_ptr(), libc::MFD_ALLOW_SEALING) };
        assert!(raw >= 0);
        // SAFETY: contract of `from_raw_fd`: new, and nobody else's.
        unsafe { OwnedFd::from_raw_fd(raw) }
    };
    let bytes = builder().bytes().unwrap() as u64;
    let file = File::from(memfd());
    file.set_len(bytes).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(error(builder().attach_fd(&file)), SharedError::Unsealed);
    // SAFETY: contract of `fcntl`: a descriptor and a number.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) }, 0);
    assert_eq!(error(builder().attach_fd(&file)), SharedError::NotReady, "zeros");

    fs::write(&name, b"something else").unwrap();
    fs::set_permissions(&name, fs::Permissions::from_mode(0o600)).unwrap();
    let got = u64::from_le_bytes(*b"somethin");
    assert_eq!(error(builder().attach(&name)), SharedError::Magic { got });
    assert_eq!(error(inspect(&name)), SharedError::Magic { got });
    drop(name);

    let name = Name::new("cut-short");
    let region = builder().create(&name).unwrap();
    drop(region);
    OpenOptions::new().write(true).open(&name).unwrap().set_len(bytes - 4096).unwrap();
    assert_eq!(error(builder().attach(&name)), SharedError::Size { got: bytes - 4096, expected: bytes });
    OpenOptions::new().write(true).open(&name).unwrap().set_len(100).unwrap();
    assert_eq!(error(builder().attach(&name)), SharedError::Corrupt);

    let link = Name::new("link");
    symlink(&name, &link).unwrap();
    assert_eq!(errno(builder().attach(&link)), ("open", libc::ELOOP));
    let folder = File::open(std::env::temp_dir()).unwrap();
    assert!(matches!(error(builder().attach_fd(&folder)), SharedError::NotAFile { .. }));
    let nowhere = std::path::Path::new("/nowhere/region");
    assert_eq!(errno(builder().create(nowhere)), ("open", libc::ENOENT));
    let device = std::path::Path::new("/dev/zero");
    assert!(
        matches!(error(inspect(device)), SharedError::NotAFile { .. }),
        "zeros that never end are no region to come"
    );

    let too_large = builder().keys(u64::MAX).bytes();
    assert_eq!(error(too_large), SharedError::Config(ConfigError::Memory { bytes: usize::MAX }));
}

/// Nobody waits for who would write into it.
#[test]
fn a_pipe_is_refused_at_once() {
    let name = Name::new("pipe");
    let path = std::ffi::CString::new(name.0.to_str().unwrap()).unwrap();
    // SAFETY: contract of `mkfifo`: a string and a number.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let (to_us, answers) = std::sync::mpsc::channel();
    let path = name.0.clone();
    thread::spawn(move || to_us.send([error(inspect(&path)), error(builder().open(&path))]));
    for answer in answers.recv_timeout(10 * SECOND).expect("an answer") {
        assert!(matches!(answer, SharedError::NotAFile { .. }), "{answer}");
    }
}

#[test]
fn a_descriptor_that_can_only_be_read_is_refused() {
    let name = Name::new("read-only");
    drop(builder().create(&name).unwrap());
    assert_eq!(errno(builder().attach_fd(File::open(&name).unwrap())), ("mmap", libc::EACCES));
}

/// What is refused leaves nothing behind in the process.
#[test]
fn errors_leave_no_descriptor_and_no_mapping() {
    let folder = Name::new("leaks").0.clone();
    fs::create_dir(&folder).unwrap();
    let name = Name(folder.join("region"));
    // A file without a name is told by its folder.
    let is_ours = |path: &str| path.contains(folder.to_str().unwrap());
    let held = || {
        let files =
            fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| entry.unwrap().path().read_link().ok());
        let mappings = fs::read_to_string("/proc/self/maps").unwrap();
        let files = files.filter(|file| is_ours(&file.to_string_lossy())).count();
        (files, mappings.lines().filter(|line| is_ours(line)).count())
    };
    let region = builder().create(&name).unwrap();
    assert_eq!(held(), (0, 1), "the region's mapping alone");
    let other = Region::builder(log(6)).limiters(3).keys(20);
    for _ in 0..100 {
        error(builder().create(&name));
        error(other.attach(&name));
        error(other.open(&name));
        error(builder().limiters(4).attach(&name));
        inspect(&name).unwrap();
        drop(builder().attach(&name).unwrap());
    }
    assert_eq!(held(), (0, 1));
    drop(region);
    assert_eq!(held(), (0, 0));
    drop(name);
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn files_that_others_may_write_are_not_trusted() {
    let name = Name::new("trust");
    drop(builder().mode(0o620).create(&name).unwrap());
    assert!(builder().mode(0o620).attach(&name).is_ok(), "as it was made");
    assert!(builder().mode(0o660).attach(&name).is_ok());
    // SAFETY: contract of `geteuid`: none.
    let owner = unsafe { libc::geteuid() };
    assert_eq!(error(builder().attach(&name)), SharedError::Permission { owner, mode: 0o620 });
    fs::set_permissions(&name, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(builder().attach(&name).is_ok(), "others may read");
    if owner == 0 {
        std::os::unix::fs::chown(&name, Some(1), None).unwrap();
        assert_eq!(error(builder().attach(&name)), SharedError::Permission { owner: 1, mode: 0o644 });
        assert!(builder().any_owner().attach(&name).is_ok());
    }
}

#[test]
fn inspect_tells_what_it_is() {
    let config = Window::builder(9, SECOND).rule(20, 3 * SECOND).config().unwrap();
    let region = Region::builder(config).limiters(2).keys(7).when_full(WhenFull::Refuse).time(Time::Boot);
    let (_region, file) = region.memfd("inspected").unwrap();
    let info = inspect_fd(&file).unwrap();
    assert_eq!((info.layout, info.algorithm.as_str(), info.limiters, info.key_slots), (2, "window", 2, 14));
    assert_eq!(info.rules[..], [Rule::new(9, SECOND), Rule::new(20, 3 * SECOND)]);
    assert_eq!((info.when_full, info.time), (Some(WhenFull::Refuse), Some(Time::Boot)));
    assert_eq!((info.bytes, info.is_current), (region.bytes().unwrap() as u64, true));
}

#[test]
fn clocks_are_those_of_the_system() {
    let system = |id| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: contract of `clock_gettime`: a place for the answer.
        assert_eq!(unsafe { libc::clock_gettime(id, &raw mut time) }, 0);
        Nanos::from(Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32))
    };
    for (clock, id) in [(System::monotonic(), libc::CLOCK_MONOTONIC), (System::boot(), libc::CLOCK_BOOTTIME)]
    {
        let before = system(id);
        let now = clock.now();
        assert!(before <= now && now <= system(id));
    }
    let (region, _file) = builder().time(Time::Caller).memfd("clock").unwrap();
    assert_eq!((region.clock(), region.now()), (None, None));
    assert_eq!(builder().memfd("clock").unwrap().0.clock(), Some(System::monotonic()));
}

/// A log whose limit is no power of two has room for every index that its bits can name.
#[test]
fn a_stride_holds_every_index() {
    let bytes = |limit| Region::builder(log(limit)).limiters(1).bytes().unwrap() - 1024;
    assert_eq!(bytes(16), log(16).state_bytes());
    assert_eq!(bytes(17), bytes(32));
    assert_eq!(bytes(1_000), bytes(1_024));
}
