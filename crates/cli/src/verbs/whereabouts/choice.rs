//! The choices made with the keys of the view.

use chokepoint_model::report::Whereabouts;

use super::outlet::Next;
use crate::terminal::keys::Key;

/// The order in which places are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PlaceOrder {
    /// As a request passes them.
    #[default]
    Path,
    /// Most requests first.
    Size,
    /// Summed up by tier.
    Tier,
}

/// The present choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Show only this tier.
    pub(super) tier: Option<String>,
    pub(super) order: PlaceOrder,
    pub(super) clients: bool,
    pub(super) help: bool,
}

impl Choice {
    /// Applies a key.
    pub(super) fn press(&mut self, key: Key, report: Option<&Whereabouts>) -> Next {
        match key {
            Key::Char('q' | 'Q') => return Next::Quit,
            _ if self.help => self.help = false,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('c') => self.clients = !self.clients,
            Key::Char('p') => {
                self.order = match self.order {
                    PlaceOrder::Path => PlaceOrder::Size,
                    PlaceOrder::Size => PlaceOrder::Tier,
                    PlaceOrder::Tier => PlaceOrder::Path,
                };
            }
            Key::Char('t') => {
                let mut names = report.into_iter().flat_map(|report| &report.target.tiers).map(|tier| &tier.name);
                self.tier = match &self.tier {
                    None => names.next().cloned(),
                    Some(own) => names.skip_while(|name| *name != own).nth(1).cloned(),
                };
            }
            Key::Char(_) | Key::Other => {}
        }
        Next::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::whereabouts as samples;

    #[test]
    fn each_key_cycles_through_its_choices() {
        let report = samples::busy();
        let mut choice = Choice::default();
        let mut press = |key| (choice.press(Key::Char(key), Some(&report)), choice.clone());
        let tiers: Vec<Option<String>> = (0..3).map(|_| press('t').1.tier).collect();
        assert_eq!(tiers, [Some("nginx".to_owned()), Some("php-fpm".to_owned()), None]);
        assert_eq!([0; 3].map(|_| press('p').1.order), [PlaceOrder::Size, PlaceOrder::Tier, PlaceOrder::Path]);
        assert_eq!([0; 2].map(|_| press('c').1.clients), [true, false]);
        assert!(press('?').1.help);
        assert_eq!(press('t').1, Choice::default(), "any key leaves the help and does nothing else");
        assert_eq!(press('x'), (Next::Continue, Choice::default()));
        assert_eq!(press('q').0, Next::Quit);
    }

    #[test]
    fn from_a_tier_that_is_gone_the_key_leads_to_all_tiers() {
        let mut choice = Choice { tier: Some("gone".to_owned()), ..Choice::default() };
        choice.press(Key::Char('t'), Some(&samples::busy()));
        assert_eq!(choice.tier, None);
        choice.press(Key::Char('t'), None);
        assert_eq!(choice.tier, None);
    }
}
