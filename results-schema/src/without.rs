//! Reading a struct without some of its fields: their text is passed over, and they are as if nothing was there.

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Hands on what `inner` has, but for the fields that are left out.
pub(crate) struct Without<'a, T> {
    pub(crate) inner: T,
    /// Each a list or optional.
    pub(crate) left_out: &'a [&'a str],
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Without<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let Without { inner, left_out } = self;
        inner.deserialize_map(Without { inner: visitor, left_out })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Without<'_, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.inner.expecting(formatter)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let Without { inner, left_out } = self;
        inner.visit_map(Fields { map, left_out, is_left_out: false })
    }
}

struct Fields<'a, A> {
    map: A,
    left_out: &'a [&'a str],
    /// The field whose value comes next.
    is_left_out: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(name) = self.map.next_key::<String>()? else { return Ok(None) };
        self.is_left_out = self.left_out.contains(&name.as_str());
        seed.deserialize(StringDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if !self.is_left_out {
            return self.map.next_value_seed(seed);
        }
        self.map.next_value::<IgnoredAny>()?;
        seed.deserialize(Nothing(std::marker::PhantomData))
    }
}

/// An optional value that is not there, or a list without elements.
struct Nothing<E>(std::marker::PhantomData<E>);

impl<'de, E: Error> Deserializer<'de> for Nothing<E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_none()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_seq(SeqDeserializer::new(std::iter::empty::<()>()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct tuple tuple_struct map struct enum identifier ignored_any
    }
}
