//! The netlink wire format: messages and attributes (netlink(7)), read without copying. No length is trusted.

/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER_BYTES: usize = 16;
/// Bytes of `struct nlattr`.
pub(crate) const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// NLA_F_NESTED and NLA_F_NET_BYTEORDER are flags in an attribute's type.
const ATTRIBUTE_KIND_MASK: u16 = 0x3fff;
const NLM_F_DUMP_INTR: u16 = 0x10;

/// A malformed netlink message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    /// The length of a message is shorter than its header or longer than the bytes.
    #[error("a netlink message at byte {at} claims {length} bytes, but {left} are left")]
    Message {
        /// Its offset.
        at: usize,
        /// Its length field.
        length: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A fixed part is too short.
    #[error("{what}: {found} bytes instead of at least {wanted}")]
    Short {
        /// Which structure.
        what: &'static str,
        /// Bytes found.
        found: usize,
        /// Bytes wanted.
        wanted: usize,
    },
    /// The length of an attribute is shorter than its header or longer than the bytes.
    #[error("a netlink attribute at byte {at} claims {length} bytes, but {left} are left")]
    Attribute {
        /// Its offset within its message or parent.
        at: usize,
        /// Its length field.
        length: usize,
        /// Bytes that are left.
        left: usize,
    },
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// `nlmsg_type`.
    pub(crate) kind: u16,
    /// `nlmsg_flags`.
    pub(crate) flags: u16,
    /// `nlmsg_seq`.
    pub(crate) sequence: u32,
    /// The bytes after the header.
    pub(crate) body: &'a [u8],
    /// Header, body and padding.
    pub(crate) whole: &'a [u8],
    /// Offset of the body in all bytes.
    pub(crate) body_at: usize,
}

impl<'a> Message<'a> {
    /// True if the list changed during the dump.
    pub(crate) fn interrupted(&self) -> bool {
        self.flags & NLM_F_DUMP_INTR != 0
    }

    /// The body's fixed part and the attributes after it.
    pub(crate) fn split(&self, what: &'static str, fixed: usize) -> Result<(&'a [u8], &'a [u8]), WireError> {
        split(self.body, what, fixed)
    }
}

/// The first `fixed` bytes and the rest.
pub(crate) fn split<'a>(bytes: &'a [u8], what: &'static str, fixed: usize) -> Result<(&'a [u8], &'a [u8]), WireError> {
    bytes.split_at_checked(fixed).ok_or(WireError::Short { what, found: bytes.len(), wanted: fixed })
}

/// The messages in these bytes. The first malformed one is the last.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Message<'_>, WireError>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let start = at;
        let length = u32_at(rest, 0).unwrap_or(0) as usize;
        if rest.len() < HEADER_BYTES || length < HEADER_BYTES || length > rest.len() {
            at = bytes.len();
            return Some(Err(WireError::Message { at: start, length, left: rest.len() }));
        }
        // The last message's padding may be missing.
        let padded = aligned(length).min(rest.len());
        at += padded;
        Some(Ok(Message {
            kind: u16_at(rest, 4).unwrap_or(0),
            flags: u16_at(rest, 6).unwrap_or(0),
            sequence: u32_at(rest, 8).unwrap_or(0),
            body: &rest[HEADER_BYTES..length],
            whole: &rest[..padded],
            body_at: start + HEADER_BYTES,
        }))
    })
}

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    /// `nla_type` without its flags.
    pub(crate) kind: u16,
    /// Its value.
    pub(crate) value: &'a [u8],
    /// Offset of the value in all bytes.
    pub(crate) value_at: usize,
}

/// The attributes in these bytes. The first malformed one is the last.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = Result<Attribute<'_>, WireError>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let start = at;
        let length = u16_at(rest, 0).map_or(0, usize::from);
        if rest.len() < ATTRIBUTE_HEADER_BYTES || length < ATTRIBUTE_HEADER_BYTES || length > rest.len() {
            at = bytes.len();
            return Some(Err(WireError::Attribute { at: start, length, left: rest.len() }));
        }
        at += aligned(length);
        Some(Ok(Attribute {
            kind: u16_at(rest, 2).unwrap_or(0) & ATTRIBUTE_KIND_MASK,
            value: &rest[ATTRIBUTE_HEADER_BYTES..length],
            value_at: start + ATTRIBUTE_HEADER_BYTES,
        }))
    })
}

/// A request: header and body, padded.
pub(crate) fn request(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = HEADER_BYTES + body.len();
    let mut bytes = Vec::with_capacity(aligned(length));
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(body);
    bytes.resize(aligned(length), 0);
    bytes
}

/// The next multiple of four (NLMSG_ALIGN, NLA_ALIGN).
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// Two bytes in the host's order. Recordings keep the byte order of their host; all supported hosts are little-endian.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Four bytes in the host's order.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes in the host's order.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The text up to the first NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// An attribute, padded.
#[cfg(test)]
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_read_with_their_padding() {
        let mut bytes = request(20, 2, 7, b"abcde");
        bytes.extend(request(21, 0x12, 8, b""));
        let found: Vec<_> = messages(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!((found[0].kind, found[0].flags, found[0].sequence, found[0].body), (20, 2, 7, &b"abcde"[..]));
        assert_eq!((found[0].whole.len(), found[1].body_at), (24, 40));
        assert!(found[1].interrupted() && !found[0].interrupted());
    }

    #[test]
    fn attributes_are_read_without_their_flags() {
        let mut bytes = attribute(0x8000 | 18, b"xyz");
        bytes.extend(attribute(1, b""));
        let found: Vec<_> = attributes(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!((found[0].kind, found[0].value, found[0].value_at), (18, &b"xyz"[..], 4));
        assert_eq!((found[1].kind, found[1].value), (1, &b""[..]));
    }

    #[test]
    fn a_malformed_length_is_an_error_and_the_end() {
        let bytes = request(20, 0, 0, b"abcdefgh");
        for cut in 1..bytes.len() {
            let found: Vec<_> = messages(&bytes[..cut]).collect();
            assert!(matches!(found[..], [Err(WireError::Message { .. })]), "cut at {cut}");
        }
        let mut zero = bytes.clone();
        zero[0] = 0;
        assert_eq!(messages(&zero).count(), 1, "a length of zero must not loop");
        assert!(matches!(attributes(&[0, 0, 1, 0]).collect::<Vec<_>>()[..], [Err(_)]));
        assert!(matches!(attributes(&[9, 0, 1, 0, 0]).collect::<Vec<_>>()[..], [Err(_)]));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(messages(&bytes).count() <= bytes.len());
            prop_assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
