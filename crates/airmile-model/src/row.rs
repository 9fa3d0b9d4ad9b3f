//! Records as rows: one declaration gives the struct and its columns.

use serde_json::{Map, Number};

use crate::stamp::{Clock, Stamp};
use crate::tti::{Position, TtiIndex};

/// The type of a column. Every column may be null unless documented otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Signed 64-bit integer.
    Int,
    /// Double.
    Float,
    /// True or false.
    Bool,
    /// UTF-8 text.
    Text,
    /// Raw bytes (lower-case hexadecimal in JSON and CSV).
    Bytes,
}

/// One column of a record type.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name, with its unit at the end if it has one.
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnType,
    /// Whether it may be absent.
    pub nullable: bool,
    /// Its meaning.
    pub doc: &'static str,
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Unknown.
    Null,
    /// Signed integer.
    Int(i64),
    /// Double.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(&'a str),
    /// Raw bytes.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// The value as JSON; bytes become hexadecimal text, and numbers that JSON cannot
    /// represent become null.
    #[must_use]
    pub fn to_json(self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Int(i) => i.into(),
            Value::Float(x) => Number::from_f64(x).map_or(serde_json::Value::Null, Into::into),
            Value::Bool(b) => b.into(),
            Value::Text(s) => s.into(),
            Value::Bytes(b) => hex(b).into(),
        }
    }
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

/// A type that is a row of a table.
pub trait Row {
    /// The table's name, as taken by `--only`.
    const NAME: &'static str;
    /// The description of a row.
    const DOC: &'static str;

    /// The columns, in order.
    fn columns() -> Vec<Column>;

    /// Passes the values to `sink`, in the columns' order.
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>));

    /// The row as a JSON object.
    fn to_json(&self) -> Map<String, serde_json::Value> {
        let mut names = Self::columns().into_iter();
        let mut object = Map::new();
        self.values(&mut |value| {
            if let Some(column) = names.next() {
                object.insert(column.name.to_owned(), value.to_json());
            }
        });
        object
    }
}

/// A field's type: one column, or (a [`Stamp`], a [`Position`]) several.
pub trait Field {
    /// Appends the field's columns. `nullable` is that of the enclosing field.
    fn columns(name: &'static str, doc: &'static str, nullable: bool, out: &mut Vec<Column>);
    /// Passes the field's values to `sink`.
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>));
    /// Number of its columns.
    const WIDTH: usize = 1;
}

macro_rules! field {
    ($($type:ty => $kind:ident, |$x:ident| $value:expr;)+) => {$(
        impl Field for $type {
            fn columns(name: &'static str, doc: &'static str, nullable: bool, out: &mut Vec<Column>) {
                out.push(Column { name, kind: ColumnType::$kind, nullable, doc });
            }
            fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>)) {
                let $x = self;
                sink($value);
            }
        }
    )+};
}

field! {
    u8 => Int, |x| Value::Int((*x).into());
    u16 => Int, |x| Value::Int((*x).into());
    u32 => Int, |x| Value::Int((*x).into());
    i64 => Int, |x| Value::Int(*x);
    u64 => Int, |x| Value::Int(i64::try_from(*x).unwrap_or(i64::MAX));
    f32 => Float, |x| Value::Float((*x).into());
    f64 => Float, |x| Value::Float(*x);
    bool => Bool, |x| Value::Bool(*x);
    String => Text, |x| Value::Text(x);
    &'static str => Text, |x| Value::Text(x);
    Vec<u8> => Bytes, |x| Value::Bytes(x);
    TtiIndex => Int, |x| Value::Int(x.0);
    Clock => Text, |x| Value::Text(x.as_str());
}

impl<T: Field> Field for Option<T> {
    fn columns(name: &'static str, doc: &'static str, _: bool, out: &mut Vec<Column>) {
        T::columns(name, doc, true, out);
    }
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>)) {
        match self {
            Some(value) => value.values(sink),
            None => (0..T::WIDTH).for_each(|_| sink(Value::Null)),
        }
    }
    const WIDTH: usize = T::WIDTH;
}

impl Field for Stamp {
    fn columns(_: &'static str, doc: &'static str, nullable: bool, out: &mut Vec<Column>) {
        let clock = "Whose clock `time_ns` is from.";
        out.push(Column { name: "clock", kind: ColumnType::Text, nullable, doc: clock });
        out.push(Column { name: "time_ns", kind: ColumnType::Int, nullable, doc });
    }
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>)) {
        sink(Value::Text(self.clock.as_str()));
        sink(Value::Int(self.ns));
    }
    const WIDTH: usize = 2;
}

impl Field for Position {
    fn columns(_: &'static str, doc: &'static str, nullable: bool, out: &mut Vec<Column>) {
        let mut push = |name, doc| out.push(Column { name, kind: ColumnType::Int, nullable, doc });
        push("timing_segment", "Counts up at each handover and each jump of the SFN or the clock.");
        push("cell", "0 the primary cell, 1.. the secondary cells.");
        push("numerology", "NR subcarrier spacing index; 0 for LTE.");
        push("tti", doc);
    }
    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>)) {
        sink(Value::Int(self.timing_segment.into()));
        sink(Value::Int(self.cell.into()));
        sink(Value::Int(self.numerology.into()));
        sink(Value::Int(self.tti.0));
    }
    const WIDTH: usize = 4;
}

/// Declares a record: the struct, its documentation and its columns at once.
#[macro_export]
macro_rules! record {
    (
        $table:literal
        #[doc = $doc:literal] $(#[doc = $more:literal])*
        $(#[derive($($derive:path),+)])?
        pub struct $name:ident {
            $( #[doc = $fdoc:literal] $(#[doc = $fmore:literal])* pub $field:ident : $type:ty, )+
        }
    ) => {
        #[doc = $doc] $(#[doc = $more])*
        #[derive(Debug, Clone, PartialEq)]
        $(#[derive($($derive),+)])?
        pub struct $name {
            $( #[doc = $fdoc] $(#[doc = $fmore])* pub $field: $type, )+
        }

        impl $crate::row::Row for $name {
            const NAME: &'static str = $table;
            const DOC: &'static str = concat!($doc, $("\n", $more),*).trim_ascii();

            fn columns() -> Vec<$crate::row::Column> {
                let mut out = Vec::new();
                $( <$type as $crate::row::Field>::columns(
                    stringify!($field),
                    concat!($fdoc, $("", $fmore),*).trim_ascii(),
                    false,
                    &mut out,
                ); )+
                out
            }

            fn values<'a>(&'a self, sink: &mut dyn FnMut($crate::row::Value<'a>)) {
                $( $crate::row::Field::values(&self.$field, sink); )+
            }
        }
    };
}

impl<T: Row> Row for Box<T> {
    const NAME: &'static str = T::NAME;
    const DOC: &'static str = T::DOC;

    fn columns() -> Vec<Column> {
        T::columns()
    }

    fn values<'a>(&'a self, sink: &mut dyn FnMut(Value<'a>)) {
        T::values(self, sink);
    }
}
