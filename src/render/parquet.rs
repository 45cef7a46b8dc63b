//! Parquet, written in row groups, so that memory does not grow with the table.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use gyan_results::{Fidelity, Number};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use super::Rows;
use crate::document::{Column, Kind, Value};

/// Rows per group: some megabytes.
const GROUP: usize = 1 << 16;
/// How many texts are kept because they are likely to recur.
const TEXTS_AT_MOST: usize = 1 << 16;
/// A longer text is not likely to recur.
const RECURRING_BYTES: usize = 256;

pub(crate) struct Parquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
    texts: HashMap<String, ByteArray>,
}

/// The part of a column that has not been written to the file yet.
struct Buffer {
    /// The column of the table.
    of: usize,
    required: bool,
    values: Buffered,
    /// For each row 1 where there is a value, else 0.
    levels: Vec<i16>,
}

enum Buffered {
    Text(Vec<ByteArray>),
    /// Integers that fit: a double leaves this null.
    Integer(Vec<i64>),
    Double(Vec<f64>),
}

impl<W: Write + Send> Parquet<W> {
    /// `table`: its name and what a row stands for, for the metadata of the file.
    pub(crate) fn new(out: W, table: [&str; 2], columns: &[Column]) -> io::Result<Parquet<W>> {
        let mut schema = "message gyan {\n".to_owned();
        let mut buffers = Vec::new();
        for (of, column) in columns.iter().enumerate() {
            let repetition = if column.required { "REQUIRED" } else { "OPTIONAL" };
            let mut add = |kind: &str, suffix: &str, values: Buffered| {
                // Writing to a string cannot fail.
                let _ = match kind.split_once(' ') {
                    Some((kind, means)) => {
                        writeln!(schema, "{repetition} {kind} {}{suffix} ({means});", column.name)
                    }
                    None => writeln!(schema, "{repetition} {kind} {}{suffix};", column.name),
                };
                let required = column.required;
                buffers.push(Buffer { of, required, values, levels: Vec::new() });
            };
            match column.kind {
                Kind::Text | Kind::Place | Kind::Prose => {
                    add("BYTE_ARRAY STRING", "", Buffered::Text(Vec::new()));
                }
                Kind::Integer => add("INT64", "", Buffered::Integer(Vec::new())),
                Kind::Time => {
                    let kind = "INT64 TIMESTAMP(MILLIS,true)";
                    add(kind, "", Buffered::Integer(Vec::new()));
                }
                Kind::Double => add("DOUBLE", "", Buffered::Double(Vec::new())),
                // A double on its own would lose precision above 2^53.
                Kind::Number | Kind::Spare => {
                    add("DOUBLE", "", Buffered::Double(Vec::new()));
                    add("INT64", "_integer", Buffered::Integer(Vec::new()));
                }
            }
        }
        schema.push('}');
        let schema = Arc::new(parse_message_type(&schema).map_err(io_error)?);
        let compression = Compression::ZSTD(parquet::basic::ZstdLevel::default());
        let [name, row] = table;
        let abouts: BTreeMap<&str, &str> =
            columns.iter().map(|column| (column.name, column.about)).collect();
        let unit = |column: &Column| Some((column.name, column.unit()?));
        let units: BTreeMap<&str, &str> = columns.iter().filter_map(unit).collect();
        let fidelity = |column: &Column| Some((column.name, column.fidelity?));
        let fidelities: BTreeMap<&str, Fidelity> = columns.iter().filter_map(fidelity).collect();
        let metadata = vec![
            KeyValue::new("gyan.table".into(), name.to_owned()),
            KeyValue::new("gyan.row".into(), row.to_owned()),
            KeyValue::new("gyan.columns".into(), serde_json::to_string(&abouts)?),
            KeyValue::new("gyan.units".into(), serde_json::to_string(&units)?),
            KeyValue::new("gyan.fidelity".into(), serde_json::to_string(&fidelities)?),
        ];
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_key_value_metadata(Some(metadata))
            .build();
        let writer =
            SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(io_error)?;
        Ok(Parquet { writer, columns: buffers, rows: 0, texts: HashMap::new() })
    }

    /// Adds to the metadata of the file.
    pub(crate) fn note(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for buffer in &mut self.columns {
            if let Some(column) = group.next_column()? {
                buffer.write(column)?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> Rows for Parquet<W> {
    fn row(&mut self, row: &[Value]) -> io::Result<()> {
        if self.texts.len() > TEXTS_AT_MOST {
            self.texts.clear();
        }
        for buffer in &mut self.columns {
            buffer.push(row.get(buffer.of).unwrap_or(&Value::Nothing), &mut self.texts);
        }
        self.rows += 1;
        if self.rows == GROUP { self.write_group().map_err(io_error) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(io_error)?;
        }
        self.writer.close().map(drop).map_err(io_error)
    }
}

impl Buffer {
    fn push(&mut self, cell: &Value, texts: &mut HashMap<String, ByteArray>) {
        let number = match cell {
            Value::Amount(amount) => Some(amount.number),
            Value::Rank(rank) => Some(Number::Integer((*rank).into())),
            _ => None,
        };
        let is_there = match (&mut self.values, cell, number) {
            (Buffered::Text(values), Value::Text(text), _) => {
                if text.len() > RECURRING_BYTES {
                    values.push(ByteArray::from(text.as_bytes().to_vec()));
                } else if let Some(known) = texts.get(text.as_ref()) {
                    values.push(known.clone());
                } else {
                    let bytes = ByteArray::from(text.as_bytes().to_vec());
                    texts.insert(text.to_string(), bytes.clone());
                    values.push(bytes);
                }
                true
            }
            (Buffered::Integer(values), _, Some(Number::Integer(integer))) => {
                let integer = i64::try_from(integer).ok();
                values.extend(integer);
                integer.is_some()
            }
            (Buffered::Double(values), _, Some(number)) => {
                values.push(number.as_f64());
                true
            }
            _ => false,
        };
        if !is_there && self.required {
            // Counts in a column that is never null: they stay below 2^63.
            if let Buffered::Integer(values) = &mut self.values {
                values.push(i64::MAX);
            }
        }
        self.levels.push(i16::from(is_there));
    }

    fn write(&mut self, mut column: SerializedColumnWriter) -> Result<(), ParquetError> {
        let levels = (!self.required).then_some(&self.levels[..]);
        match &mut self.values {
            Buffered::Text(values) => {
                column.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Buffered::Integer(values) => {
                column.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Buffered::Double(values) => {
                column.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        self.levels.clear();
        column.close()
    }
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        // Errors of the file system arrive wrapped.
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error.to_string()),
        },
        error => io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    const fn column(name: &'static str, kind: Kind, required: bool) -> Column {
        Column { name, kind, required, fidelity: None, about: "what it is" }
    }

    const COLUMNS: [Column; 3] = [
        column("variable", Kind::Text, true),
        column("object", Kind::Text, false),
        column("delta", Kind::Number, false),
    ];

    #[test]
    fn what_is_read_back_is_what_was_written() {
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = Box::new(Parquet::new(&mut file, ["some", "thing"], &COLUMNS).unwrap());
        let numbers = [
            Number::Integer((1 << 53) + 1),
            Number::Double(0.5),
            Number::Integer(u64::MAX.into()),
            Number::Integer(i64::MIN.into()),
        ];
        // More than a row group.
        let rows = GROUP + 7;
        for (row, number) in numbers.into_iter().cycle().take(rows).enumerate() {
            let object = Value::from(format!("communicator {}", row % 5));
            let object = if row % 2 == 0 { object } else { Value::Nothing };
            writer.row(&["v".into(), object, number.into()]).unwrap();
        }
        writer.finish().unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| metadata.iter().find(|of| of.key == key).unwrap().value.clone();
        assert_eq!(value("gyan.table").as_deref(), Some("some"));
        assert!(value("gyan.columns").unwrap().contains("\"delta\":\"what it is\""));
        let mut read = 0;
        for (row, number) in reader.get_row_iter(None).unwrap().zip(numbers.into_iter().cycle()) {
            let row = row.unwrap();
            assert_eq!(row.get_string(0).unwrap(), "v");
            let object = row.get_string(1).ok().cloned();
            let expected = format!("communicator {}", read % 5);
            assert_eq!(object, (read % 2 == 0).then_some(expected));
            assert_eq!(Number::Double(row.get_double(2).unwrap()), Number::Double(number.as_f64()));
            let integer = match number {
                Number::Integer(integer) => i64::try_from(integer).ok(),
                Number::Double(_) => None,
            };
            assert_eq!(row.get_long(3).ok(), integer, "{number}");
            read += 1;
        }
        assert_eq!(read, rows);
    }
}
