//! `diagnose --fix` and `undo` after somebody else edited the configuration of nginx and did not reload it.
//!
//! Live: a real nginx.

use crate::harness::{Chokepoint, Nginx, site};

#[test]
fn yes_alone_does_not_activate_the_edit_of_somebody_else() {
    let chokepoint = Chokepoint::new();
    let Some(nginx) = Nginx::start(&chokepoint.file("nginx")) else { return };
    let before = nginx.main();
    let edited = site(nginx.port, 503);
    std::fs::write(nginx.site(), &edited).unwrap();
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let fix = |more: &[&str]| {
        chokepoint.run(&[&["diagnose", "--fix", "--yes", "--verbose", "-c", "60", "-z", "2s"], more, &[url.as_str()]].concat())
    };
    let ran = fix(&[]);
    assert!(ran.stdout.contains("worker-connections-exhausted"), "{}{}", ran.stdout, ran.stderr);
    // The whole command is shown, with its user.
    let shown = format!("as user 0, group 0: /usr/sbin/nginx -t -c {}", nginx.dir.join("nginx.conf").display());
    assert!(ran.stderr.contains(&shown) && ran.stderr.contains(&format!("kill -HUP {}", nginx.running.0.id())), "{}", ran.stderr);
    let words: String = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("--reload-unseen"), "{}", ran.stdout);
    assert_eq!(nginx.main(), before, "nothing was edited");

    let ran = fix(&["--reload-unseen"]);
    assert_ne!(nginx.main(), before, "{}{}", ran.stdout, ran.stderr);

    // An edit does not block an undo, which says what else its reload activates.
    std::fs::write(nginx.site(), format!("{edited}# more\n")).unwrap();
    let ran = chokepoint.run(&["undo"]);
    assert_eq!((ran.status, nginx.main()), (Some(0), before), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("conf.d/site.conf") && ran.stdout.contains("conf.d/site.conf"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_flag_is_refused_without_fix() {
    let ran = Chokepoint::new().run(&["diagnose", "--reload-unseen", "http://127.0.0.1:1/"]);
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--fix"), "{}", ran.stderr);
}
