//! Witnesses (C2SP tlog-witness, tlog-cosignature, tlog-policy): others that saw a history only grow, and sign that they did.
//!
//! ```text
//! old 29                                   request: the tree that the witness saw last, a proof of consistency, the note
//! base64 hash, one a line
//!                                          answer:  — NAME base64(key id || time, 8 bytes || signature)
//! the signed checkpoint                    signed:  cosignature/v1 \n time T \n the text of the note
//! ```
//!
//! Bytes and texts only: the command line sends requests. Nothing of a witness is believed but its own signature: its answer is
//! checked before a line of it is kept.

use std::collections::BTreeMap;

use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};

use crate::ProofError;
use crate::note::{Note, VerifierKey, base64, from_base64, hex, is_name};
use crate::tree::Hash;

/// The algorithm byte of a cosignature with Ed25519 and a time.
const COSIGNATURE: u8 = 4;
/// Most hashes of a request.
pub const REQUEST_HASH_COUNT_MAX: usize = 63;
/// Most lines of a policy.
const POLICY_LINE_COUNT_MAX: usize = 1000;

/// A witness: its name and its public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    public: [u8; 32],
}

impl WitnessKey {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id by which a signature names it.
    pub fn id(&self) -> [u8; 4] {
        let hash = Sha256::new().chain_update(&self.name).chain_update([b'\n', COSIGNATURE]);
        let hash: [u8; 32] = hash.chain_update(self.public).finalize().into();
        hash.first_chunk().copied().unwrap_or_default()
    }

    /// Reads `NAME+KEYID+KEY`.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if it is not the text of a witness's Ed25519 key, its id included.
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let wrong =
            || ProofError::malformed("the key is not NAME+KEYID+KEY of a witness that signs with Ed25519");
        let mut parts = text.trim().splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let key = from_base64(key).map_err(|_| wrong())?;
        let public = key.split_first().filter(|(algorithm, _)| **algorithm == COSIGNATURE);
        let public: [u8; 32] = public.and_then(|(_, key)| key.try_into().ok()).ok_or_else(wrong)?;
        VerifyingKey::from_bytes(&public).map_err(|_| wrong())?;
        let found = Self { name: name.to_owned(), public };
        if !is_name(name) || hex(&found.id()) != id { Err(wrong()) } else { Ok(found) }
    }

    /// When this witness signed a note; `None` if it did not.
    ///
    /// # Errors
    /// [`ProofError::Witness`] if a signature names it, and the witness did not make it.
    pub fn cosigned(&self, note: &Note) -> Result<Option<u64>, ProofError> {
        let wrong = |what| ProofError::Witness { name: self.name.clone(), what };
        let mut found = None;
        for signed in note.named(&self.name, self.id()) {
            let forged = || wrong("is named by a signature that is not its own");
            let (time, signature) = signed.split_first_chunk::<8>().ok_or_else(forged)?;
            let time = u64::from_be_bytes(*time);
            let signature = Signature::from_slice(signature).map_err(|_| forged())?;
            let public = VerifyingKey::from_bytes(&self.public).map_err(|_| forged())?;
            let text = format!("cosignature/v1\ntime {time}\n{}", note.text_unchecked());
            public.verify_strict(text.as_bytes(), &signature).map_err(|_| forged())?;
            found = found.max(Some(time));
        }
        Ok(found)
    }

    /// The note with the signature in this witness's answer, once it was checked. Lines of other keys are left out.
    ///
    /// # Errors
    /// [`ProofError::Witness`] if the answer has no signature of this witness, or a wrong one.
    pub fn accept(&self, note: &Note, answer: &str) -> Result<Note, ProofError> {
        let wrong = |what| ProofError::Witness { name: self.name.clone(), what };
        let unread = |_| wrong("did not answer with signatures");
        let answered = Note::parse(&format!("{}\n{answer}", note.text_unchecked())).map_err(unread)?;
        let own = answered.only(&self.name, self.id());
        match self.cosigned(&own)? {
            Some(_) => note.merged(&own),
            None => Err(wrong("answered with the signatures of others only")),
        }
    }
}

impl std::fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key: Vec<u8> = std::iter::once(COSIGNATURE).chain(self.public).collect();
        write!(f, "{}+{}+{}", self.name, hex(&self.id()), base64(&key))
    }
}

/// The body of a request to sign a note, for a witness that saw a tree of `old` leaves last.
pub fn request(old: u64, hashes: &[Hash], note: &Note) -> String {
    let mut text = format!("old {old}\n");
    for hash in hashes {
        text.push_str(&base64(&hash.0));
        text.push('\n');
    }
    format!("{text}\n{}", note.to_text())
}

/// The witnesses that have to have signed, besides the owner of a store.
#[derive(Debug, Clone, Default)]
pub struct WitnessPolicy {
    logs: Vec<VerifierKey>,
    witnesses: Vec<PolicyMember>,
    groups: BTreeMap<String, WitnessGroup>,
    quorum: Option<String>,
}

/// A witness of a policy.
#[derive(Debug, Clone)]
pub struct PolicyMember {
    /// Its name in the policy.
    pub name: String,
    /// Its key.
    pub key: WitnessKey,
    /// Where it takes requests.
    pub url: Option<String>,
}

#[derive(Debug, Clone)]
struct WitnessGroup {
    count: usize,
    members: Vec<String>,
}

/// How a note stands to a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quorum {
    /// Witnesses that signed, and when.
    pub signed: Vec<(String, u64)>,
    /// Witnesses that did not sign.
    pub missing: Vec<String>,
    /// Whether the witnesses that signed are enough.
    pub is_enough: bool,
    /// The rule, in words.
    pub rule: String,
}

impl WitnessPolicy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// [`WitnessPolicyError`] with the line.
    pub fn parse(text: &str) -> Result<Self, WitnessPolicyError> {
        let mut policy = Self::default();
        let mut used = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let fail = |what| WitnessPolicyError { line: number, what };
            if number > POLICY_LINE_COUNT_MAX {
                return Err(fail("a policy has at most 1000 lines"));
            }
            let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["log", key] | ["log", key, _] => {
                    let key = VerifierKey::parse(key).map_err(|_| fail("this is no key of a log"))?;
                    if policy.logs.iter().any(|log| log.public() == key.public()) {
                        return Err(fail("this log is there already"));
                    }
                    policy.logs.push(key);
                }
                ["witness", name, key, url @ ..] if url.len() < 2 => {
                    policy.check_free(name).map_err(fail)?;
                    let key = WitnessKey::parse(key)
                        .map_err(|_| fail("this is no key of a witness that signs with Ed25519"))?;
                    if policy.witnesses.iter().any(|member| member.key.public == key.public) {
                        return Err(fail("this witness is there already"));
                    }
                    let url = url.first().map(|url| (*url).to_owned());
                    policy.witnesses.push(PolicyMember { name: (*name).to_owned(), key, url });
                }
                ["group", name, count, members @ ..] if !members.is_empty() => {
                    policy.check_free(name).map_err(fail)?;
                    let group = policy.group(count, members, &mut used).map_err(fail)?;
                    policy.groups.insert((*name).to_owned(), group);
                }
                ["quorum", name] => {
                    if policy.quorum.is_some() {
                        return Err(fail("there is a second line with a quorum"));
                    }
                    if *name != "none" && !policy.is_known(name) {
                        return Err(fail("the quorum is no witness and no group of the lines before"));
                    }
                    policy.quorum = Some((*name).to_owned());
                }
                _ => return Err(fail("this is no line of a policy: log, witness, group or quorum")),
            }
        }
        match policy.quorum {
            Some(_) => Ok(policy),
            None => {
                Err(WitnessPolicyError { line: text.lines().count(), what: "there is no line with a quorum" })
            }
        }
    }

    fn is_known(&self, name: &str) -> bool {
        self.groups.contains_key(name) || self.witnesses.iter().any(|member| member.name == name)
    }

    fn check_free(&self, name: &str) -> Result<(), &'static str> {
        if name == "none" || self.is_known(name) { Err("this name is taken") } else { Ok(()) }
    }

    fn group(
        &self,
        count: &str,
        members: &[&str],
        used: &mut Vec<String>,
    ) -> Result<WitnessGroup, &'static str> {
        let count = match count {
            "any" => 1,
            "all" => members.len(),
            number => number.parse().map_err(|_| "a group needs any, all or a number of its members")?,
        };
        if count == 0 || count > members.len() {
            return Err("a group cannot need that many of its members");
        }
        for member in members {
            if !self.is_known(member) {
                return Err("a member is no witness and no group of the lines before");
            }
            // So that no witness counts twice.
            if used.iter().any(|used| used == member) {
                return Err("a member is in a group already");
            }
            used.push((*member).to_owned());
        }
        Ok(WitnessGroup { count, members: members.iter().map(|member| (*member).to_owned()).collect() })
    }

    /// Its witnesses.
    pub fn witnesses(&self) -> &[PolicyMember] {
        &self.witnesses
    }

    /// The keys that it believes about logs.
    pub fn logs(&self) -> &[VerifierKey] {
        &self.logs
    }

    /// The witnesses that signed a note, and whether they are enough. A wrong signature counts as none.
    pub fn judge(&self, note: &Note) -> Quorum {
        let (mut signed, mut missing) = (Vec::new(), Vec::new());
        for member in &self.witnesses {
            match member.key.cosigned(note) {
                Ok(Some(time)) => signed.push((member.name.clone(), time)),
                _ => missing.push(member.name.clone()),
            }
        }
        let quorum = self.quorum.as_deref().unwrap_or("none");
        let is_enough = quorum == "none" || self.holds(quorum, &signed);
        Quorum { signed, missing, is_enough, rule: self.rule(quorum) }
    }

    /// Whether a witness or a group has signed. Groups name earlier ones only, so this ends.
    fn holds(&self, name: &str, signed: &[(String, u64)]) -> bool {
        match self.groups.get(name) {
            Some(group) => {
                group.members.iter().filter(|member| self.holds(member, signed)).count() >= group.count
            }
            None => signed.iter().any(|(witness, _)| witness == name),
        }
    }

    fn rule(&self, name: &str) -> String {
        match self.groups.get(name) {
            Some(WitnessGroup { count, members }) => format!("{count} of {}", members.join(", ")),
            None => name.to_owned(),
        }
    }
}

/// Why a policy cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct WitnessPolicyError {
    /// The line, from 1.
    pub line: usize,
    /// The fault.
    pub what: &'static str,
}
