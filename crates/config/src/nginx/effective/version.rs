//! nginx's version, which determines some defaults.

/// A version like 1.22.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u16, pub u16, pub u16);

impl Version {
    /// The version assumed if none is known: Debian 12's.
    pub const FALLBACK: Self = Self(1, 22, 1);

    /// Parses "nginx version: nginx/1.22.1 (Ubuntu)", "openresty/1.21.4.1" or "1.22.1"; `None` without such a number.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.rsplit_once('/').map_or(text, |(_, numbers)| numbers).trim();
        let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(numbers.len());
        let mut parts = numbers[..end].split('.').map(|part| part.parse::<u16>().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self(major, minor, parts.next().flatten().unwrap_or(0)))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_in_every_form() {
        assert_eq!(Version::parse("nginx version: nginx/1.22.1"), Some(Version(1, 22, 1)));
        assert_eq!(Version::parse("nginx/1.18.0 (Ubuntu)"), Some(Version(1, 18, 0)));
        assert_eq!(Version::parse("openresty/1.21.4.1"), Some(Version(1, 21, 4)));
        assert_eq!(Version::parse("1.29"), Some(Version(1, 29, 0)));
        for bad in ["", "nginx", "1", "x.y.z", "99999999.1.1", "/"] {
            assert_eq!(Version::parse(bad), None, "{bad}");
        }
        assert!(Version(1, 29, 7) > Version(1, 9, 15));
    }
}
