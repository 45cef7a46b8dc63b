//! Functions of other objects: found by name, and called by a prototype that nothing can check.

/// One such function, or a struct of them.
///
/// ```text
/// let free = foreign!(address, extern "C" fn(*mut usize) -> c_int);
///
/// foreign! {
///     /// What the structure is.
///     struct EventFunctions: every [unsafe extern "C"] {        `find` gives none unless every one is found;
///         get_num(*mut c_int) = c"PMPI_T_event_get_num";        with `any`, each is an `Option`
///     }
/// }
/// ```
///
/// A row has the name of the field, the arguments and the name of the symbol; all return an int. Whoever writes
/// it vouches for the prototype, and says where it is from.
macro_rules! foreign {
    ($(#[$about:meta])* $visibility:vis struct $name:ident: every $kind:tt {
        $($field:ident $arguments:tt = $symbol:literal;)+
    }) => {
        $(#[$about])*
        $visibility struct $name {
            $($visibility $field: foreign!(@type $kind $arguments),)+
        }

        impl $name {
            $visibility fn find(
                find: impl Fn(&'static std::ffi::CStr) -> Option<$crate::sys::symbols::Address>,
            ) -> Option<$name> {
                Some($name {
                    $($field: foreign!(find($symbol)?, foreign!(@type $kind $arguments)),)+
                })
            }
        }
    };
    ($(#[$about:meta])* $visibility:vis struct $name:ident: any $kind:tt {
        $($field:ident $arguments:tt = $symbol:literal;)+
    }) => {
        $(#[$about])*
        $visibility struct $name {
            $($visibility $field: Option<foreign!(@type $kind $arguments)>,)+
        }

        impl $name {
            $visibility fn find(
                find: impl Fn(&'static std::ffi::CStr) -> Option<$crate::sys::symbols::Address>,
            ) -> $name {
                $name {
                    $($field: find($symbol)
                        .map(|address| foreign!(address, foreign!(@type $kind $arguments))),)+
                }
            }
        }
    };
    (@type [$($kind:tt)+] ($($argument:ty),*)) => {
        $($kind)+ fn($($argument),*) -> c_int
    };
    ($address:expr, $prototype:ty) => {{
        let address: $crate::sys::symbols::Address = $address;
        // SAFETY: the prototype, for which the place that names it vouches.
        unsafe { std::mem::transmute::<$crate::sys::symbols::Address, $prototype>(address) }
    }};
}
pub(crate) use foreign;
