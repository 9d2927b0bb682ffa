//! Which requests a layer asks about.
//!
//! In doubt a request is limited. So a path that is to be limited is compared in a plain spelling (`//api/./%6Cogin/` is
//! `/api/login`), in which a router may or may not see it, and both with `..` resolved and with it left alone; a path that is
//! let through is compared as it is written, and has to be the same one in its plain spelling, too: `/health/../api` is not
//! below `/health`.

use std::fmt;

use http::Method;

use crate::{BuildError, Head};

/// What a layer is told of paths and methods.
#[derive(Default)]
pub(crate) struct Filter {
    only_paths: Vec<String>,
    /// As it is written, and plain.
    except_paths: Vec<(String, String)>,
    only_methods: Vec<Method>,
    except_methods: Vec<Method>,
    except: Vec<Predicate>,
}

type Predicate = Box<dyn Fn(&Head<'_>) -> bool + Send + Sync>;

// === impl Filter ===

impl Filter {
    pub(crate) fn only_paths<'p>(&mut self, paths: impl IntoIterator<Item = &'p str>) {
        self.only_paths.extend(paths.into_iter().map(str::to_owned));
    }

    pub(crate) fn except_paths<'p>(&mut self, paths: impl IntoIterator<Item = &'p str>) {
        self.except_paths
            .extend(paths.into_iter().map(|path| (path.to_owned(), plain(path, Parents::Resolved))));
    }

    pub(crate) fn only_methods(&mut self, methods: impl IntoIterator<Item = Method>) {
        self.only_methods.extend(methods);
    }

    pub(crate) fn except_methods(&mut self, methods: impl IntoIterator<Item = Method>) {
        self.except_methods.extend(methods);
    }

    pub(crate) fn except(&mut self, predicate: Predicate) {
        self.except.push(predicate);
    }

    /// Brings the paths to be limited into the plain spelling.
    pub(crate) fn check(&mut self) -> Result<(), BuildError> {
        let all = self.only_paths.iter().chain(self.except_paths.iter().map(|(path, _)| path));
        if let Some(got) = all.into_iter().find(|path| !path.starts_with('/')) {
            return Err(BuildError::Path { got: got.clone() });
        }
        for path in &mut self.only_paths {
            *path = plain(path, Parents::Resolved);
        }
        Ok(())
    }

    /// Whether the layer asks about a request.
    pub(crate) fn asks(&self, head: &Head<'_>) -> bool {
        let (path, method) = (head.uri.path(), head.method);
        (self.only_methods.is_empty() || self.only_methods.contains(method))
            && !self.except_methods.contains(method)
            && !self.is_excepted(path)
            && (self.only_paths.is_empty() || self.is_limited(path))
            && !self.except.iter().any(|except| except(head))
    }

    fn is_excepted(&self, path: &str) -> bool {
        self.except_paths.iter().any(|(under, plain_under)| {
            is_under(path, under) && is_under(&plain(path, Parents::Resolved), plain_under)
        })
    }

    fn is_limited(&self, path: &str) -> bool {
        [Parents::Kept, Parents::Resolved].into_iter().any(|parents| {
            let path = plain(path, parents);
            self.only_paths.iter().any(|under| is_under(&path, under))
        })
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("only_paths", &self.only_paths)
            .field("except_paths", &self.except_paths)
            .field("only_methods", &self.only_methods)
            .field("except_methods", &self.except_methods)
            .finish_non_exhaustive()
    }
}

/// Whether a path is the other one or lies below it: by whole segments.
fn is_under(path: &str, under: &str) -> bool {
    let under = under.trim_end_matches('/');
    path.strip_prefix(under).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What becomes of `..` in a path: some routers take the segment before it away, others let it be a segment like any other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parents {
    Kept,
    Resolved,
}

/// A path in its plain spelling: nothing escaped, lower case, no empty segments and no dots alone.
fn plain(path: &str, parents: Parents) -> String {
    let bytes = unescaped(path.as_bytes());
    let text = String::from_utf8_lossy(&bytes).to_lowercase();
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." if parents == Parents::Resolved => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    format!("/{}", segments.join("/"))
}

fn unescaped(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| path.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut plain, mut at) = (Vec::with_capacity(path.len()), 0);
    while let Some(&byte) = path.get(at) {
        let escaped = if byte == b'%' { digit(at + 1).zip(digit(at + 2)) } else { None };
        match escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Parents::*, *};

    #[test]
    fn paths_are_compared_by_segments() {
        for (path, under, expected) in [
            ("/api", "/api", true),
            ("/api/login", "/api", true),
            ("/api/login", "/api/", true),
            ("/apis", "/api", false),
            ("/", "/api", false),
            ("/anything", "/", true),
        ] {
            assert_eq!(is_under(path, under), expected, "{path} under {under}");
        }
    }

    #[test]
    fn f091_other_spellings_of_a_limited_path_are_limited() {
        for spelling in [
            "/api/login",
            "//api/login",
            "/api//login",
            "/api/login/",
            "/api/./login",
            "/api/%6Cogin",
            "/API/login",
            "/x/../api/login",
            "/%61pi%2Flogin",
            "/api\\login",
        ] {
            assert_eq!(plain(spelling, Resolved), "/api/login", "{spelling}");
        }
        assert_eq!(plain("/a%", Resolved), "/a%");
        assert_eq!(plain("/a%f", Resolved), "/a%f");
        assert_eq!(plain("/../..", Resolved), "/");
        assert_eq!(plain("/API/%2e./x/.", Kept), "/api/../x");
    }
}
