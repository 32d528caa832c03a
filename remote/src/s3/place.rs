//! `s3://BUCKET/PREFIX`: where in which bucket.

use crate::remote::RemoteError;

/// Longest prefix: a key has 1,024 bytes at most, and those of a store need half of them.
const PREFIX_BYTES_MAX: usize = 500;

/// A prefix of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Place {
    bucket: String,
    /// Empty, or with `/` behind it.
    prefix: String,
}

impl S3Place {
    /// The place of a URL's parts: the bucket, and a path of any number of names.
    ///
    /// # Errors
    /// [`RemoteError::Refused`] if the bucket has no such name, or a name of the path is empty, `.` or `..`.
    pub fn new(bucket: &str, path: &str) -> Result<Self, RemoteError> {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let is_bucket = (1..=255).contains(&bucket.len())
            && bucket.bytes().all(is_sign)
            && bucket.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !is_bucket {
            return Err(RemoteError::Refused { what: "a bucket of such a name".to_owned() });
        }
        let path = path.trim_matches('/');
        // Such names would be another place: addresses are read as paths are.
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
        if !path.is_empty() && (path.len() > PREFIX_BYTES_MAX || !path.split('/').all(is_name)) {
            return Err(RemoteError::Refused { what: "a prefix of such a name".to_owned() });
        }
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        Ok(Self { bucket: bucket.to_owned(), prefix })
    }

    /// The bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The beginning of each key: nothing, or names with `/` behind each.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_bucket_and_names() {
        for (bucket, path, prefix) in [
            ("bucket", "", Some("")),
            ("bucket", "/", Some("")),
            ("my.bucket-1", "/a/b c/", Some("a/b c/")),
            ("bucket", "/a//b", None),
            ("bucket", "/../other", None),
            ("bucket", "/a/./b", None),
            ("bucket", "/a\nb", None),
            ("", "/a", None),
            ("user@bucket", "/a", None),
            ("..", "/a", None),
        ] {
            let place = S3Place::new(bucket, path).ok();
            assert_eq!(place.as_ref().map(S3Place::prefix), prefix, "{bucket}{path}");
        }
        assert!(S3Place::new("b", &"a".repeat(600)).is_err());
    }
}
