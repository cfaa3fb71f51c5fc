//! How a function of the header is written.
//!
//! ```text
//! c_api! {
//!     fn rocksdb_put(db: &Db, options: &WriteOptions, key: [u8], value: [u8], error) { ... }
//! }
//! ```
//!
//! Parameters are those of the header. The body sees what they stand for:
//!
//! | Parameter | In C | In the body |
//! |---|---|---|
//! | `x: &T`, `x: &mut T` | a pointer | a reference |
//! | `x: ?T` | a pointer or NULL | `Option<&T>` |
//! | `x: own T` | a pointer that is given away, or NULL | `Option<T>` |
//! | `x: [u8]`, `x: ?[u8]` | a pointer and a length | bytes; `Option` of bytes |
//! | `x: str`, `x: path` | a text | `&str`, `&Path` |
//! | `x: cstr`, `x: ?cstr` | a text, or NULL | `&CStr`, `Option<&CStr>` |
//! | `x: flag` | `unsigned char` | `bool` |
//! | any other type | that type | that type |
//! | `error`, the last one | `char** errptr` | the body may use `?` |
//!
//! A function with `error` reports failures and panics. Any other ends the process with a
//! message if a pointer cannot be right.

/// Declares functions.
macro_rules! c_api {
    ($($(#[$meta:meta])* fn $name:ident($($args:tt)*) $(-> $ret:ty)? $body:block)*) => {
        $($crate::api::c_function! { $name [$($ret)?] $body [] [] $($args)* })*
    };
}

macro_rules! c_function {
    ($name:ident [$($ret:ty)?] $body:block [$($params:tt)*]
        [$(($x:ident $get:ident $with:tt))*]) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($params)*) $(-> $ret)? {
            $(let $x = $crate::abi::or_abort(stringify!($name), $x.$get $with);)*
            $body
        }
    };
    ($name:ident [$($ret:ty)?] $body:block [$($params:tt)*] [$(($x:ident $get:ident $with:tt))*]
        error) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($params)* error: $crate::abi::ErrorSlot) $(-> $ret)? {
            error.guard(|| {
                $(let $x = $x.$get $with?;)*
                Ok($body)
            })
        }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: &mut $t:ty $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Mut<$t>,] [$($gets)* ($x get ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: &$t:ty $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Ref<$t>,] [$($gets)* ($x get ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: own $t:ty $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Own<$t>,] [$($gets)* ($x get ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: [u8] $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Bytes, len: usize,]
            [$($gets)* ($x get (len))] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: ?[u8] $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Bytes, len: usize,]
            [$($gets)* ($x nullable (len))] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: str $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Text,] [$($gets)* ($x utf8 ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: cstr $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Text,] [$($gets)* ($x get ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: ?cstr $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Text,] [$($gets)* ($x nullable ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: ?$t:ty $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Ref<$t>,] [$($gets)* ($x nullable ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: path $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Text,] [$($gets)* ($x path ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] [$($gets:tt)*]
        $x:ident: flag $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body
            [$($params)* $x: $crate::abi::Flag,] [$($gets)* ($x get ())] $($($rest)*)? }
    };
    ($name:ident $ret:tt $body:block [$($params:tt)*] $gets:tt
        $x:ident: $t:ty $(, $($rest:tt)*)?) => {
        $crate::api::c_function! { $name $ret $body [$($params)* $x: $t,] $gets $($($rest)*)? }
    };
}

/// Declares a function that destroys an object; NULL is none.
macro_rules! destroys {
    ($($name:ident: $type:ty,)*) => {
        $crate::api::c_api! { $(fn $name(object: own $type) {
            let _destroyed = object;
        })* }
    };
}

/// Declares a function that makes an object with defaults.
macro_rules! creates {
    ($($name:ident: $type:ty,)*) => {
        $crate::api::c_api! {
            $(fn $name() -> *mut $crate::abi::Tagged<$type> {
                $crate::abi::make(<$type>::default())
            })*
        }
    };
}

/// Declares a setter and a getter for each row, as `PREFIX_set_NAME` and `PREFIX_get_NAME`. A row
/// is `KIND C_TYPE, NAME: PLACE;`, or `KIND C_TYPE => C_TYPE_OF_GETTER, NAME: PLACE;`:
///
/// - `value`: `PLACE` is a field, of a type that is a [`Setting`](crate::convert::Setting)
/// - `choice`: the same, of a type that is a [`Choice`](crate::convert::Choice)
/// - `known`: `PLACE` is RocksDB's name of an option that the engine knows and does not act on
/// - `known_flag`: the same, for a truth value that C has as an `int`
macro_rules! c_settings {
    ($prefix:literal, $type:ty, |$o:ident| {
        $($kind:ident $set:ty $(=> $get:ty)?, $name:ident: $place:expr;)*
    }) => {
        $(const _: () = {
            #[unsafe(export_name = concat!($prefix, "_set_", stringify!($name)))]
            extern "C" fn set($o: $crate::abi::Mut<$type>, value: $set) {
                let function = concat!($prefix, "_set_", stringify!($name));
                let $o = $crate::abi::or_abort(function, $o.get());
                $crate::api::c_setting! { @set $kind $name $o $place, value }
            }
            $crate::api::c_setting! {
                @getter [$prefix] [$type] $kind $name $o $place, $set $(, $get)?
            }
        };)*
    };
}

macro_rules! c_setting {
    (@set value $name:ident $o:ident $place:expr, $value:ident) => {
        $place = $crate::convert::Setting::from_c($value);
    };
    (@set choice $name:ident $o:ident $place:expr, $value:ident) => {
        match $crate::convert::Choice::from_number($value.into()) {
            Some(choice) => {
                $place = choice;
                $crate::refused::Refuses::accept($o, stringify!($name));
            }
            None => {
                $crate::refused::Refuses::refuse_number($o, stringify!($name), $value.into());
            }
        }
    };
    (@set known $name:ident $o:ident $place:expr, $value:ident) => {
        $o.set_known($place, &$crate::convert::Known::text($value));
    };
    (@set known_flag $name:ident $o:ident $place:expr, $value:ident) => {
        $o.set_known($place, &($value != 0).to_string());
    };
    (@getter $prefix:tt $type:tt $kind:ident $name:ident $o:ident $place:expr, $set:ty) => {
        $crate::api::c_setting! { @getter $prefix $type $kind $name $o $place, $set, $set }
    };
    (@getter [$prefix:literal] [$type:ty] $kind:ident $name:ident $o:ident $place:expr,
        $set:ty, $get:ty) => {
        #[unsafe(export_name = concat!($prefix, "_get_", stringify!($name)))]
        extern "C" fn get($o: $crate::abi::Ref<$type>) -> $get {
            let function = concat!($prefix, "_get_", stringify!($name));
            let $o = $crate::abi::or_abort(function, $o.get());
            $crate::api::c_setting! { @get $kind $name $o $place }
        }
    };
    (@get value $name:ident $o:ident $place:expr) => {
        $crate::convert::Setting::to_c(&$place)
    };
    (@get choice $name:ident $o:ident $place:expr) => {
        $crate::convert::narrow(
            $crate::refused::Refuses::refused($o)
                .number(stringify!($name))
                .unwrap_or_else(|| $crate::convert::Choice::number(&$place)),
        )
    };
    (@get known $name:ident $o:ident $place:expr) => {
        $crate::convert::Known::parse($o.known($place))
    };
    (@get known_flag $name:ident $o:ident $place:expr) => {
        <u8 as $crate::convert::Known>::parse($o.known($place)).into()
    };
}

pub(crate) use {c_api, c_function, c_setting, c_settings, creates, destroys};
