//! The kernel's tracepoints: their numbers and data layouts, read from tracefs. It need not be mounted.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use crate::host::{exists, owned_fd};

/// Maximum bytes of a file of tracefs. The longest formats list hundreds of named values.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Where tracefs is mounted, newest location first (Documentation/trace/ftrace.rst).
const MOUNTED: &[&str] = &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// `FSCONFIG_CMD_CREATE` of linux/mount.h.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

#[derive(Debug)]
pub(crate) struct Tracefs {
    directory: PathBuf,
    /// Our own mount, attached nowhere. It disappears with its descriptor.
    _mount: Option<OwnedFd>,
}

/// Why tracepoints cannot be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tracepoints cannot be looked up: tracefs is {0}")]
pub(crate) struct NoTracefs(String);

impl Tracefs {
    /// Opens the mounted tracefs, or mounts one that is attached nowhere (fsopen(2), Linux 5.2; needs CAP_SYS_ADMIN).
    pub(crate) fn open() -> Result<Self, NoTracefs> {
        let mounted = MOUNTED.iter().map(PathBuf::from).find(|directory| exists(directory.join("events/header_page")));
        if let Some(directory) = mounted {
            return Ok(Self { directory, _mount: None });
        }
        match mount_detached() {
            Ok(fd) => Ok(Self { directory: PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd())), _mount: Some(fd) }),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) => Err(NoTracefs(
                "not readable by this user: run as root, or mount it (mount -t tracefs tracefs /sys/kernel/tracing) and allow reading"
                    .to_owned(),
            )),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENOSYS)) => {
                Err(NoTracefs("not in this kernel (CONFIG_TRACING)".to_owned()))
            }
            Err(error) => Err(NoTracefs(format!("not accessible: {error}"))),
        }
    }

    /// The error of a host without tracefs, for tests.
    #[cfg(test)]
    pub(crate) fn absent() -> NoTracefs {
        NoTracefs("not here".to_owned())
    }

    /// The number of a tracepoint; none if the kernel has none of this name. Only names that pass [`is_name`] are looked up.
    pub(crate) fn id(&self, category: &str, name: &str) -> Option<u64> {
        self.file(category, name, "id")?.trim().parse().ok()
    }

    /// The layout of a tracepoint's data.
    pub(crate) fn format(&self, category: &str, name: &str) -> Option<Format> {
        Some(Format::parse(&self.file(category, name, "format")?))
    }

    fn file(&self, category: &str, name: &str, file: &str) -> Option<String> {
        if !is_name(category) || !is_name(name) {
            return None;
        }
        let mut text = String::new();
        let path = self.directory.join("events").join(category).join(name).join(file);
        File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// Whether this is a valid name of a tracepoint or kernel function. Such a name cannot leave its directory.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && !name.starts_with('.')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.'))
}

fn mount_detached() -> std::io::Result<OwnedFd> {
    // SAFETY: the name is a NUL-terminated string; the flag is FSOPEN_CLOEXEC. The call returns a new descriptor, or fails.
    let context = unsafe { owned_fd(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 1)) }?;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: the descriptor is open; this command takes neither key nor value.
    if unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open; the flag is FSMOUNT_CLOEXEC. The call returns a new descriptor, or fails.
    unsafe { owned_fd(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0)) }
}

/// A field of a tracepoint's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// The layout of a tracepoint's data, and its names for numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Format {
    pub(crate) fields: Vec<Field>,
    /// The pairs `{ number, "name" }` of the print format, in order.
    pub(crate) symbols: Vec<(u64, String)>,
}

impl Format {
    /// Parses lines such as "field:TYPE NAME;  offset:N;  size:N;  signed:N;" and the names in "print fmt". Other lines are skipped.
    pub(crate) fn parse(text: &str) -> Self {
        let fields = text.lines().filter_map(field).collect();
        let print = text.lines().find_map(|line| line.strip_prefix("print fmt:")).unwrap_or_default();
        Self { fields, symbols: symbols(print) }
    }

    /// The bytes of a field.
    pub(crate) fn bytes<'a>(&self, name: &str, data: &'a [u8]) -> Option<&'a [u8]> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        data.get(field.offset..field.offset.checked_add(field.size)?)
    }

    /// An unsigned number.
    pub(crate) fn number(&self, name: &str, data: &[u8]) -> Option<u64> {
        let bytes = self.bytes(name, data)?;
        match *bytes {
            [a] => Some(u64::from(a)),
            [a, b] => Some(u64::from(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
            _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    }
}

fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.rsplit(' ').next()?.split('[').next()?.trim_start_matches('*');
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
    Some(Field { name: name.to_owned(), offset: number("offset:")?, size: number("size:")? })
}

fn symbols(print: &str) -> Vec<(u64, String)> {
    let pair = |text: &str| {
        let (number, rest) = text.split_once(',')?;
        let name = rest.trim().strip_prefix('"')?.split('"').next()?;
        let number = number.trim();
        let number = match number.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        Some((number, name.to_owned()))
    };
    print.split('{').skip(1).filter_map(|part| pair(part.split('}').next()?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
name: kfree_skb
ID: 2310
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:void * location;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;
\tfield:enum skb_drop_reason reason;\toffset:40;\tsize:4;\tsigned:0;

print fmt: \"reason: %s\", __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, { 0x3, \"NO_SOCKET\" })
";

    #[test]
    fn fields_and_names_are_parsed() {
        let format = Format::parse(TEXT);
        let names: Vec<&str> = format.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["common_type", "location", "comm", "reason"]);
        assert_eq!(format.symbols, [(2, "NOT_SPECIFIED".to_owned()), (3, "NO_SOCKET".to_owned())]);
        let mut data = vec![0; 44];
        data[40..].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!((format.number("reason", &data), format.number("common_type", &data)), (Some(7), Some(0)));
        assert_eq!((format.number("reason", &data[..43]), format.number("comm", &data), format.number("x", &data)), (None, None, None));
    }

    #[test]
    fn names_cannot_leave_their_directory() {
        for wrong in ["", "..", ".", "a/b", "../x", "a b", "é"] {
            assert!(!is_name(wrong), "{wrong}");
        }
        assert!(is_name("sys_enter_accept4") && is_name("kvm-x.y"));
    }

    #[test]
    fn tracepoints_of_this_kernel_have_numbers_and_layouts() {
        let tracefs = match Tracefs::open() {
            Ok(tracefs) => tracefs,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let Some(id) = tracefs.id("sched", "sched_switch") else { return eprintln!("skipped: tracefs is not readable here") };
        let format = tracefs.format("sched", "sched_switch").expect("a layout");
        assert!(id > 0 && format.fields.iter().any(|field| field.name == "prev_pid"), "{format:?}");
        assert_eq!(tracefs.id("sched", "no_such_one"), None);
        assert_eq!(tracefs.id("..", "events"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed(text in "(\tfield:[a-z *\\[\\]]{0,20};?\t?(offset|size)?:?[0-9]{0,30};?\tsize:[0-9]{0,30};\n|print fmt: [{},\" 0-9xa-f]{0,60}\n){0,5}", data: Vec<u8>) {
            let format = Format::parse(&text);
            for field in &format.fields {
                format.number(&field.name, &data);
            }
        }

        #[test]
        fn text_cut_at_any_length_is_parsed(length in 0..TEXT.len()) {
            prop_assert!(Format::parse(&TEXT[..length]).fields.len() <= 4);
        }
    }
}
