//! Fixed vocabularies: one declaration gives the enumeration, its names in documents and
//! its column in tables.

use std::borrow::Cow;

/// Declares an enumeration whose values have a name in documents and tables.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name used in documents and tables.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of a name written by [`Self::as_str`].
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl $crate::row::Field for $name {
            fn columns(
                name: &'static str,
                doc: &'static str,
                nullable: bool,
                out: &mut Vec<$crate::row::Column>,
            ) {
                let kind = $crate::row::ColumnType::Text;
                out.push($crate::row::Column { name, kind, nullable, doc });
            }
            fn values<'a>(&'a self, sink: &mut dyn FnMut($crate::row::Value<'a>)) {
                sink($crate::row::Value::Text(self.as_str()));
            }
        }

        /// The name in a text for people.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&$crate::vocabulary::plain_name(self.as_str()))
            }
        }
    };
}
pub(crate) use vocabulary;

/// The name of a value in a text for people: words instead of the name of documents and tables.
#[must_use]
pub fn plain_name(name: &str) -> Cow<'_, str> {
    if !name.contains('_') {
        return Cow::Borrowed(name);
    }
    let words = name.replace('_', " ");
    Cow::Owned(match words.strip_prefix("loss recovery ") {
        Some(losses) => format!("loss recovery ({losses})"),
        None => words,
    })
}

#[test]
fn a_text_has_no_name_of_a_document() {
    use crate::{Cause, Verdict};
    assert_eq!(Verdict::NotRadio.to_string(), "not radio");
    assert_eq!(Cause::LossRecoveryRadio.to_string(), "loss recovery (radio)");
    assert!(Cause::ALL.iter().all(|cause| !cause.to_string().contains('_')));
}
