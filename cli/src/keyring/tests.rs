//! The keyring in tests is the library's own, which fails on demand.

#![expect(clippy::unwrap_used, reason = "tests")]

use keyring_core::{Error, mock};

use super::*;

fn fails_with(entry: &str, error: Error) {
    let entry = system::entry(entry).unwrap();
    entry.as_any().downcast_ref::<mock::Cred>().unwrap().set_error(error);
}

#[test]
fn what_was_kept_is_given_back_and_never_replaced() {
    keep("kept", &[7; 32]).unwrap();
    assert_eq!(*secret("kept").unwrap(), [7; 32]);
    assert_eq!(keep("kept", &[8; 32]).unwrap_err().code, Code::Conflict);
    assert_eq!(*secret("kept").unwrap(), [7; 32]);
    forget("kept");
    assert_eq!(secret("kept").unwrap_err().code, Code::Locked);
    keep("kept", &[8; 32]).unwrap();
    assert_eq!(*secret("kept").unwrap(), [8; 32]);
}

/// Each failure says what is wrong and what to do, none shows a byte of a key, and the kept key stays.
#[test]
fn a_keyring_that_fails_is_told_apart_and_loses_nothing() {
    keep("failing", &[7; 32]).unwrap();
    let why = || Box::new(std::io::Error::other("the bus said so"));
    for (error, message, hint) in [
        (Error::NoStorageAccess(why()), "the system's keyring is locked: the bus said so", "unlock it"),
        (Error::NoEntry, "has no entry failing of acpdb", "copy of that keyring"),
        (Error::Ambiguous(Vec::new()), "has 0 entries failing", "remove those"),
        (
            Error::PlatformFailure(why()),
            "keyring failed: Platform failure: the bus said so",
            "run this again",
        ),
        (Error::BadEncoding(b"0707\xff".to_vec()), "the entry is no text", "run this again"),
        (Error::BadDataFormat(b"0707".to_vec(), why()), "the entry is no text", "run this again"),
    ] {
        fails_with("failing", error);
        let failure = secret("failing").unwrap_err();
        assert_eq!(failure.code, Code::Locked, "{message}");
        assert!(failure.message.contains(message), "{} / {message}", failure.message);
        assert!(failure.hint.as_ref().unwrap().contains(hint), "{message}: {:?}", failure.hint);
        assert!(!failure.message.contains("0707"));
        assert_eq!(*secret("failing").unwrap(), [7; 32]);
    }
}

#[test]
fn a_keyring_that_is_locked_takes_no_new_key() {
    fails_with("refused", Error::NoStorageAccess(Box::new(std::io::Error::other("no prompt"))));
    assert!(keep("refused", &[7; 32]).unwrap_err().message.contains("locked"));
    assert!(secret("refused").unwrap_err().message.contains("no entry"));
}

#[test]
fn an_absent_keyring_says_what_to_do() {
    let failure = Trouble::Absent("no session bus".to_owned()).told("mine");
    assert_eq!(failure.code, Code::Locked);
    assert!(failure.message.contains("no keyring of the system can be reached: no session bus"));
    assert!(failure.hint.unwrap().contains("secret service"));
}

#[test]
fn an_entry_that_is_no_key_is_said_to_be_none() {
    for text in
        ["", "00", &"0".repeat(63), &"0".repeat(65), &"x".repeat(64), &"é".repeat(32), &"+0".repeat(32)]
    {
        system::set("odd", text).unwrap();
        let failure = secret("odd").unwrap_err();
        assert_eq!(failure.code, Code::Locked);
        assert!(failure.message.contains("is no key"), "{text}: {}", failure.message);
        assert!(text.is_empty() || !failure.message.contains(text), "{}", failure.message);
    }
}

#[test]
fn a_reference_is_told_from_other_texts() {
    for (text, entry) in [
        ("acpdb-in-keyring-1 store key 12ab\n", Some("store key 12ab")),
        ("acpdb-key-1 00\n", None),
        ("PRIVATE+KEY+", None),
        ("", None),
    ] {
        assert_eq!(entry_in(text, "f").unwrap(), entry);
    }
    for text in ["acpdb-in-keyring-1 ", "acpdb-in-keyring-1 a\nb", "acpdb-in-keyring-1 \u{202e}"] {
        assert!(entry_in(text, "f").unwrap_err().message.contains("f is damaged"), "{text}");
    }
    let long = format!("{WORD}{}", "a".repeat(ENTRY_BYTES_MAX + 1));
    assert!(entry_in(&long, "f").is_err());
}
