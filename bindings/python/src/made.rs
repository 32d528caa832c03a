//! Answers of the engine made into objects of Python one by one as they are told, with no JSON in between: a context of a megabyte is
//! copied once, into the texts that Python keeps.

use std::fmt::{self, Display};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use serde::ser::{self, Error as _, Serialize};

/// What an answer is made with.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'py>(pub(crate) Python<'py>);

/// Why an answer could not be made: an error of Python's, or a value without a form.
#[derive(Debug)]
pub(crate) enum Unmade {
    Python(PyErr),
    Formless(String),
}

impl Display for Unmade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Python(error) => error.fmt(f),
            Self::Formless(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unmade {}

impl ser::Error for Unmade {
    fn custom<T: Display>(why: T) -> Self {
        Self::Formless(why.to_string())
    }
}

impl From<PyErr> for Unmade {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

type Made<'py> = Result<Bound<'py, PyAny>, Unmade>;

macro_rules! numbers {
    ($($method:ident $kind:ty),*) => {
        $(fn $method(self, value: $kind) -> Made<'py> {
            Ok(value.into_pyobject(self.0).map_err(PyErr::from)?.into_any())
        })*
    };
}

impl<'py> ser::Serializer for Maker<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Unmade;
    type SerializeSeq = List<'py>;
    type SerializeTuple = List<'py>;
    type SerializeTupleStruct = List<'py>;
    type SerializeTupleVariant = Variant<List<'py>>;
    type SerializeMap = Dict<'py>;
    type SerializeStruct = Dict<'py>;
    type SerializeStructVariant = Variant<Dict<'py>>;

    numbers!(serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128);
    numbers!(serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128);
    numbers!(serialize_f32 f32, serialize_f64 f64);

    fn serialize_bool(self, value: bool) -> Made<'py> {
        Ok(value.into_pyobject(self.0).map_err(PyErr::from)?.to_owned().into_any())
    }

    fn serialize_char(self, value: char) -> Made<'py> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Made<'py> {
        Ok(PyString::new(self.0, value).into_any())
    }

    fn serialize_bytes(self, value: &[u8]) -> Made<'py> {
        Ok(PyBytes::new(self.0, value).into_any())
    }

    fn serialize_none(self) -> Made<'py> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Made<'py> {
        Ok(self.0.None().into_bound(self.0))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Made<'py> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made<'py> {
        Ok(PyString::intern(self.0, variant).into_any())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Made<'py> {
        within(variant, value.serialize(self)?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'py>, Unmade> {
        Ok(List { list: PyList::empty(self.0) })
    }

    fn serialize_tuple(self, _: usize) -> Result<List<'py>, Unmade> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List<'py>, Unmade> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Variant<List<'py>>, Unmade> {
        Ok(Variant { variant, inner: self.serialize_seq(None)? })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Dict<'py>, Unmade> {
        Ok(Dict { dict: PyDict::new(self.0), name: None })
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Dict<'py>, Unmade> {
        // Such as `RawValue`, which only serde_json itself can write.
        if name.starts_with('$') {
            return Err(Unmade::custom(format!("{name} is written by its own library alone")));
        }
        self.serialize_map(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Variant<Dict<'py>>, Unmade> {
        Ok(Variant { variant, inner: self.serialize_map(None)? })
    }
}

/// A list while it is made.
pub(crate) struct List<'py> {
    list: Bound<'py, PyList>,
}

impl<'py> List<'py> {
    fn push<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), Unmade> {
        Ok(self.list.append(value.serialize(Maker(self.list.py()))?)?)
    }

    fn made(self) -> Bound<'py, PyAny> {
        self.list.into_any()
    }
}

/// A dict while it is made, and the name that waits for its value.
pub(crate) struct Dict<'py> {
    dict: Bound<'py, PyDict>,
    name: Option<Bound<'py, PyAny>>,
}

impl<'py> Dict<'py> {
    /// Names are few and come again with each row: Python keeps one object of each.
    fn put<T: Serialize + ?Sized>(&self, name: &'static str, value: &T) -> Result<(), Unmade> {
        let py = self.dict.py();
        Ok(self.dict.set_item(PyString::intern(py, name), value.serialize(Maker(py))?)?)
    }

    fn made(self) -> Bound<'py, PyAny> {
        self.dict.into_any()
    }
}

/// What a variant with a value is: a dict of one name.
pub(crate) struct Variant<I> {
    variant: &'static str,
    inner: I,
}

fn within<'py>(variant: &'static str, value: Bound<'py, PyAny>) -> Made<'py> {
    let dict = PyDict::new(value.py());
    dict.set_item(PyString::intern(value.py(), variant), value)?;
    Ok(dict.into_any())
}

macro_rules! elements {
    ($trait:ident $method:ident) => {
        impl<'py> ser::$trait for List<'py> {
            type Ok = Bound<'py, PyAny>;
            type Error = Unmade;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unmade> {
                self.push(value)
            }

            fn end(self) -> Made<'py> {
                Ok(self.made())
            }
        }
    };
}

elements!(SerializeSeq serialize_element);
elements!(SerializeTuple serialize_element);
elements!(SerializeTupleStruct serialize_field);

impl<'py> ser::SerializeTupleVariant for Variant<List<'py>> {
    type Ok = Bound<'py, PyAny>;
    type Error = Unmade;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unmade> {
        self.inner.push(value)
    }

    fn end(self) -> Made<'py> {
        within(self.variant, self.inner.made())
    }
}

impl<'py> ser::SerializeMap for Dict<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Unmade;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Unmade> {
        let name = name.serialize(Maker(self.dict.py()))?;
        // JSON has no other names.
        self.name = Some(if name.is_instance_of::<PyString>() { name } else { name.str()?.into_any() });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unmade> {
        let name = self.name.take().ok_or_else(|| Unmade::custom("a value has no name"))?;
        Ok(self.dict.set_item(name, value.serialize(Maker(self.dict.py()))?)?)
    }

    fn end(self) -> Made<'py> {
        Ok(self.made())
    }
}

impl<'py> ser::SerializeStruct for Dict<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Unmade;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unmade> {
        self.put(name, value)
    }

    fn end(self) -> Made<'py> {
        Ok(self.made())
    }
}

impl<'py> ser::SerializeStructVariant for Variant<Dict<'py>> {
    type Ok = Bound<'py, PyAny>;
    type Error = Unmade;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unmade> {
        self.inner.put(name, value)
    }

    fn end(self) -> Made<'py> {
        within(self.variant, self.inner.made())
    }
}
