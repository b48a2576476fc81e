//! Tests of files as a process sees them: made-up trees below a temporary directory.

use std::os::unix::fs::{chown, symlink};

use rustix::fs::{FileType, ResolveFlags, mknodat, openat2};

use super::*;

#[test]
fn a_file_of_the_kernel_is_read_within_its_bound() {
    assert!(read_kernel("/proc/self/status", 1 << 14).unwrap().starts_with("Name:"));
    assert!(read_kernel("/proc/self/stat", 9).unwrap_err().to_string().contains("longer than 9"));
    assert!(read_kernel("/proc/self/none", 9).is_err());
}

#[test]
fn links_stay_below_the_root() {
    let tree = tempfile::tempdir().unwrap();
    let inside = tree.path().join("42/root");
    for directory in ["etc/a", "etc/b", "outside"] {
        std::fs::create_dir_all(inside.join(directory)).unwrap();
    }
    std::fs::write(inside.join("etc/b/x.conf"), "22").unwrap();
    std::fs::write(tree.path().join("secret"), "secret").unwrap();
    // Absolute and climbing links lead to files below the process's root, not the reader's.
    symlink("/etc/b/x.conf", inside.join("etc/a/y.conf")).unwrap();
    symlink("../../../../../../../secret", inside.join("etc/a/z.conf")).unwrap();
    symlink("loop", inside.join("etc/a/loop")).unwrap();
    let files = Files::of_process(tree.path(), 42).unwrap();
    assert_eq!(files.read("/etc/a/y.conf", 10).unwrap().0, b"22");
    assert!(files.read("/etc/a/z.conf", 10).is_err());
    assert!(files.read("/../../secret", 10).is_err());
    assert!(files.read("/etc/b/x.conf", 1).unwrap_err().to_string().contains("longer than 1"));
    assert!(files.open("/etc/a").is_err() && files.open("/etc/a/loop").is_err(), "neither a directory nor a loop is a file");
    assert!(files.exists("/etc/a/y.conf") && !files.exists("/etc/a/z.conf"));
    assert_eq!(files.names("/etc/b").unwrap(), ["x.conf"]);
    assert_eq!(files.names("/none").unwrap(), [""; 0]);
}

#[test]
fn the_same_files_are_found_as_by_the_kernel() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("root/etc/a/b")).unwrap();
    std::fs::write(tree.path().join("root/etc/file"), "").unwrap();
    std::fs::write(tree.path().join("secret"), "").unwrap();
    for (target, link) in
        [("/etc/file", "absolute"), ("../../secret", "out"), ("a/../file", "up"), ("loop", "loop"), ("a", "dir"), ("/none", "none")]
    {
        symlink(target, tree.path().join("root/etc").join(link)).unwrap();
    }
    let files = Files::of_directory(&tree.path().join("root")).unwrap();
    let inode = |opened: io::Result<OwnedFd>| opened.and_then(|opened| File::from(opened).metadata()).map(|meta| meta.ino()).ok();
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let mut found = 0;
    for path in
        "/ etc etc/file /etc/absolute /etc/out /etc/up /etc/loop /etc/dir /etc/dir/b /etc/dir/../file /etc/none /etc/file/x /../secret /.."
            .split(' ')
            .chain([""])
    {
        for flags in [OFlags::PATH, OFlags::PATH | OFlags::NOFOLLOW, directory] {
            let below = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            let whole = openat2(&files.root, path, flags | OFlags::CLOEXEC, Mode::empty(), below);
            if matches!(whole, Err(Errno::NOSYS | Errno::PERM)) {
                return println!("skipped: openat2(2) is missing or forbidden");
            }
            let (whole, stepped) = (inode(whole.map_err(io::Error::from)), inode(files.open_with(path.as_ref(), flags)));
            assert_eq!(whole, stepped, "{path} {flags:?}");
            found += usize::from(stepped.is_some());
        }
    }
    assert!(found >= 20, "{found}");
}

#[test]
fn files_are_found_while_others_are_renamed() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("a")).unwrap();
    std::fs::write(tree.path().join("file"), "").unwrap();
    let files = Files::of_directory(tree.path()).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let is_running = || !is_over.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (tree.path().join("a/1"), tree.path().join("a/2"));
            std::fs::create_dir(&one).unwrap();
            while is_running() {
                std::fs::rename(&one, &other).unwrap();
                std::fs::rename(&other, &one).unwrap();
            }
        });
        // Without the steps some fail.
        let failed: Vec<io::Error> = (0..20_000).filter_map(|_| files.open("/a/../file").err()).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(failed.is_empty(), "{failed:?}");
    });
}

#[test]
fn patterns_match_in_every_component() {
    let tree = tempfile::tempdir().unwrap();
    for directory in ["etc/a", "etc/b", "out"] {
        std::fs::create_dir_all(tree.path().join("root").join(directory)).unwrap();
    }
    for file in ["etc/a/1.conf", "etc/b/2.conf", "etc/b/3.txt"] {
        std::fs::write(tree.path().join("root").join(file), "").unwrap();
    }
    symlink("/none", tree.path().join("root/etc/a/0.conf")).unwrap();
    symlink("../../../..", tree.path().join("root/etc/up")).unwrap();
    let files = Files::of_directory(&tree.path().join("root")).unwrap();
    assert_eq!(files.matching("/etc/*/*.conf", 9).unwrap(), ["/etc/a/1.conf", "/etc/b/2.conf"]);
    assert_eq!(files.matching("/etc/*/*.conf", 1).unwrap().len(), 1);
    assert_eq!(files.matching("/etc/none", 9).unwrap(), ["/etc/none"]);
    assert_eq!(files.matching("/etc/up/et*/b/[23].conf", 9).unwrap(), ["/etc/up/etc/b/2.conf"], "no link leads out");
    assert_eq!(files.matching("/none/*", 9).unwrap(), [""; 0]);
}

#[test]
fn owners_of_anything_on_the_way_are_listed() {
    let tree = tempfile::tempdir().unwrap();
    let own = rustix::process::geteuid().as_raw();
    std::fs::create_dir(tree.path().join("dir")).unwrap();
    std::fs::write(tree.path().join("dir/file"), "").unwrap();
    symlink("dir/file", tree.path().join("link")).unwrap();
    symlink("loop", tree.path().join("loop")).unwrap();
    let files = Files::of_directory(tree.path()).unwrap();
    assert!(files.open_trusted("/link", own).is_ok());
    assert!(files.open_trusted("/loop", own).is_err() && files.open_trusted("/dir", own).is_err());
    assert!(files.owners("/loop").is_err() && files.owners("/none").is_err());
    if own != 0 {
        println!("skipped: only root gives files away");
        return;
    }
    assert_eq!(files.owners("/link").unwrap(), []);
    assert_eq!(files.first_owner("/link"), None);
    chown(tree.path().join("dir"), Some(4001), Some(4002)).unwrap();
    std::os::unix::fs::lchown(tree.path().join("link"), Some(4003), None).unwrap();
    let owners: Vec<u32> = files.owners("/link").unwrap().iter().map(Rights::uid).collect();
    assert_eq!(owners, [4003, 4001]);
    assert_eq!([files.first_owner("/link"), files.first_owner("/dir/none")], [Some(4003), Some(4001)]);
    let why = files.open_trusted("/dir/file", 0).unwrap_err();
    assert_eq!((why.kind(), why.to_string()), (io::ErrorKind::PermissionDenied, "/dir can be changed by user 4001".to_owned()));
    assert!(files.open_trusted("/dir/file", 4001).is_ok() && files.open_trusted("/link", 4001).is_err());
    assert!(files.open_owned("/link", 4001).is_err() && files.open_owned("/link", 4003).is_ok(), "the link is another user's");
}

#[test]
fn a_link_of_the_kernel_opens_the_file_itself_and_no_pipe() {
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("file");
    std::fs::write(&path, "x").unwrap();
    let held = File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let link = |file: &dyn AsRawFd| Path::new(OWN).join(file.as_raw_fd().to_string());
    assert_eq!(io::read_to_string(open_link(&link(&held)).unwrap()).unwrap(), "x");
    let (reader, _writer) = io::pipe().unwrap();
    assert_eq!(open_link(&link(&reader)).unwrap_err().to_string(), "it is not a regular file");
}

#[test]
fn a_pipe_does_not_hang_and_a_device_is_not_opened() {
    let tree = tempfile::tempdir().unwrap();
    mknodat(CWD, tree.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    symlink("pipe", tree.path().join("link")).unwrap();
    let files = Files::of_directory(tree.path()).unwrap();
    for name in ["pipe", "link"] {
        assert_eq!(files.open(name).unwrap_err().to_string(), "it is not a regular file", "{name}");
    }
    assert!(Files::of_directory(Path::new("/")).unwrap().open("/dev/null").is_err());
    assert!(Files::of_directory(&tree.path().join("pipe")).is_err(), "a root is a directory");
}

#[test]
fn a_lease_keeps_nobody_waiting() {
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("leased");
    std::fs::write(&path, "text").unwrap();
    // The signal of the break would end it.
    let hold = "import fcntl, signal, sys\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nfile = open(sys.argv[1], 'r+')\n\
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('held', flush=True)\nsys.stdin.read()";
    let mut python = std::process::Command::new("/usr/bin/python3");
    python.args(["-c", hold]).arg(&path).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let Ok(mut holder) = python.spawn() else { return println!("skipped: no python3") };
    let mut said = [0; 5];
    holder.stdout.take().unwrap().read_exact(&mut said).unwrap();
    let files = Files::of_directory(tree.path()).unwrap();
    let began = std::time::Instant::now();
    for opened in [open_named(&path), files.open("leased"), files.open_owned("leased", rustix::process::geteuid().as_raw())] {
        let why = opened.unwrap_err();
        assert_eq!((why.kind(), why.to_string()), (io::ErrorKind::WouldBlock, LEASED.to_owned()));
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "fs.lease-break-time is 45 s");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(io::read_to_string(open_named(&path).unwrap()).unwrap(), "text");
}

#[test]
fn a_pipe_that_the_user_names_is_read_as_it_is_written() {
    let (reader, mut writer) = io::pipe().unwrap();
    let named = open_named(&Path::new(OWN).join(reader.as_raw_fd().to_string())).unwrap();
    let read = std::thread::spawn(move || io::read_to_string(named).unwrap());
    io::Write::write_all(&mut writer, b"late").unwrap();
    drop(writer);
    assert_eq!(read.join().unwrap(), "late");
    assert!(open_named(Path::new("/none")).is_err());
}

#[test]
fn a_file_of_another_user_is_refused() {
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("perf-1.map");
    std::fs::write(&path, "1").unwrap();
    let own = rustix::process::geteuid().as_raw();
    let files = Files::of_directory(tree.path()).unwrap();
    assert!(files.open_owned("perf-1.map", own).is_ok());
    if own != 0 {
        println!("skipped: only root gives files away");
        return;
    }
    chown(&path, Some(12_345), None).unwrap();
    assert!(files.open_owned("perf-1.map", 12_345).is_ok());
    assert!(files.open_owned("perf-1.map", 12_346).is_err());
}
