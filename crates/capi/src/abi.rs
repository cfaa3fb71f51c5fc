//! Where C's pointers become Rust's references. Longer than usual: all unsafe code of the crate is
//! here.
//!
//! Parameters of functions have types of this module that are pointers to C. Each has a `get`,
//! which says so if the pointer cannot be right. Beyond that the proofs rest on what the header
//! asks of the caller: a pointer to an object comes from the function that makes such objects and
//! was not destroyed; a length is that of the bytes at the pointer, and they stay during the call;
//! an object is changed (`Mut`) or destroyed (`Own`) by one thread, and used by no other meanwhile.
//! Any number of threads may share a database, a family, options and caches through `Ref`;
//! iterators, batches, transactions and writers, which are not `Sync`, belong to one at a time.
//!
//! An object begins with a pointer, as RocksDB's do: there to the C++ object, here to itself
//! (`include/rocksdb/rust_rocksdb.h`). In debug builds a tag follows. The last 4,096 objects that
//! were destroyed stay in quarantine, with another tag, so that the check of a pointer to them
//! reads no freed memory.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use flagstone_rocksdb::Error;

/// What a function returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Something that C has pointers to.
pub trait Handle: Sized {
    /// What the header calls it.
    const NAME: &'static str;
    /// The name that its tag is made of. Bindings pass a database with transactions, which has the
    /// same layout, where a plain one is asked for.
    #[cfg(debug_assertions)]
    const KIND: &'static str = Self::NAME;

    /// Whether RocksDB's object would hold something. One that does not begins with NULL.
    fn holds(&self) -> bool {
        true
    }
}

/// Gives types their names.
macro_rules! handles {
    ($($type:ty = $name:literal,)*) => {
        $(impl $crate::abi::Handle for $type {
            const NAME: &'static str = concat!("rocksdb_", $name, "_t");
        })*
    };
}
pub(crate) use handles;

/// An object in memory.
#[repr(C)]
pub struct Tagged<T> {
    held: *const c_void,
    #[cfg(debug_assertions)]
    tag: std::sync::atomic::AtomicU64,
    value: ManuallyDrop<T>,
}

/// The tag of what was destroyed.
#[cfg(debug_assertions)]
const DESTROYED: u64 = 0xdead_0bec_dead_0bec;

/// FNV-1a of the name.
#[cfg(debug_assertions)]
const fn tag_of(name: &str) -> u64 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Writes a new object.
fn place<T: Handle>(value: T, memory: *mut Tagged<T>) -> *mut Tagged<T> {
    let held = if value.holds() { memory.cast_const().cast() } else { std::ptr::null() };
    let tagged = Tagged {
        held,
        #[cfg(debug_assertions)]
        tag: tag_of(T::KIND).into(),
        value: ManuallyDrop::new(value),
    };
    // SAFETY: both callers allocated memory of this size, aligned for it.
    unsafe { memory.write(tagged) };
    memory
}

/// A new object of C's. It lives until [`Own::get`] takes it.
pub fn make<T: Handle>(value: T) -> *mut Tagged<T> {
    place(value, Box::into_raw(Box::<Tagged<T>>::new_uninit()).cast())
}

/// An object that C frees as plain memory. Its value must own nothing.
pub fn make_lent<T: Handle>(value: T) -> *mut Tagged<T> {
    const { assert!(align_of::<Tagged<T>>() <= align_of::<usize>()) };
    // SAFETY: malloc may be called with any size; its result is checked.
    let memory = unsafe { libc::malloc(size_of::<Tagged<T>>()) }.cast::<Tagged<T>>();
    assert!(!memory.is_null(), "out of memory");
    place(value, memory)
}

/// A pointer to what another object owns, for as long as C must keep that object.
pub struct Lent<T>(*const T);

impl<T> Lent<T> {
    /// A pointer to nothing.
    pub fn nothing() -> Self {
        Self(std::ptr::null())
    }

    /// A pointer to a part of an object.
    pub fn to(part: &T) -> Self {
        Self(part)
    }

    /// The part.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: NULL, or by the module's contract its owner was not destroyed.
        unsafe { self.0.as_ref() }
    }
}

/// Refuses what is NULL, and in debug builds what is something else or was destroyed.
#[inline]
fn check<T: Handle>(pointer: *const Tagged<T>) -> Result<()> {
    if pointer.is_null() {
        return Err(null(T::NAME));
    }
    #[cfg(debug_assertions)]
    {
        // SAFETY: by the module's contract the pointer came from `make` for some type, all of which
        // have a tag at the same place; what was destroyed is in quarantine.
        let tag = unsafe { (*pointer).tag.load(std::sync::atomic::Ordering::Acquire) };
        if tag == DESTROYED {
            let name = T::NAME;
            return Err(Error::invalid_argument(format_args!("{name} was destroyed before")));
        }
        if tag != tag_of(T::KIND) {
            let name = T::NAME;
            return Err(Error::invalid_argument(format_args!("a pointer is to no {name}")));
        }
    }
    Ok(())
}

fn null(what: &str) -> Error {
    Error::invalid_argument(format_args!("NULL where {what} must be"))
}

/// A pointer to an object.
#[repr(transparent)]
pub struct Ref<T>(*const Tagged<T>);

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T: Handle> Ref<T> {
    /// The object.
    #[inline]
    pub fn get<'a>(self) -> Result<&'a T> {
        check(self.0)?;
        // SAFETY: `check` passed it; by the module's contract it lives during the call.
        Ok(unsafe { &(*self.0).value })
    }

    /// The object, or nothing for NULL.
    pub fn nullable<'a>(self) -> Result<Option<&'a T>> {
        if self.0.is_null() { Ok(None) } else { self.get().map(Some) }
    }
}

/// A pointer to an object that is changed.
#[repr(transparent)]
pub struct Mut<T>(*mut Tagged<T>);

impl<T> Clone for Mut<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Mut<T> {}

impl<T: Handle> Mut<T> {
    /// The pointer.
    pub fn raw(self) -> *mut Tagged<T> {
        self.0
    }

    /// The object, or nothing for NULL.
    pub fn nullable<'a>(self) -> Result<Option<&'a mut T>> {
        if self.0.is_null() { Ok(None) } else { self.get().map(Some) }
    }

    /// The object.
    #[inline]
    pub fn get<'a>(self) -> Result<&'a mut T> {
        check(self.0)?;
        // SAFETY: `check` passed it; by the module's contract it lives during the call, and no
        // other thread uses it.
        Ok(unsafe { &mut (*self.0).value })
    }
}

/// A pointer to an object that the call takes.
#[repr(transparent)]
pub struct Own<T>(*mut Tagged<T>);

impl<T: Handle> Own<T> {
    /// The object; nothing for NULL.
    pub fn get(self) -> Result<Option<T>> {
        if self.0.is_null() {
            return Ok(None);
        }
        check(self.0)?;
        // SAFETY: `check` passed it, and by the module's contract it is given away once: nothing
        // reads the value after this.
        let value = unsafe { std::ptr::read(&raw const (*self.0).value) };
        bury(self.0);
        Ok(Some(ManuallyDrop::into_inner(value)))
    }
}

/// The value of an object that `make` made, and of which C has no pointer any more.
pub fn take<T: Handle>(pointer: *mut Tagged<T>) -> Option<T> {
    or_abort(T::NAME, Own(pointer).get())
}

/// Destroys such an object.
pub fn unmake<T: Handle>(pointer: *mut Tagged<T>) {
    drop(take(pointer));
}

/// Frees the memory of an object whose value was taken.
#[cfg(not(debug_assertions))]
fn bury<T>(pointer: *mut Tagged<T>) {
    // SAFETY: the pointer came from `Box::into_raw` in `make`; the value is not dropped again.
    drop(unsafe { Box::from_raw(pointer) });
}

/// Marks the memory of an object whose value was taken, and frees what was marked long ago.
#[cfg(debug_assertions)]
fn bury<T>(pointer: *mut Tagged<T>) {
    use std::alloc::{Layout, dealloc};
    use std::collections::VecDeque;
    use std::sync::{Mutex, PoisonError};

    const GRAVES_MAX: usize = 4096;
    static GRAVES: Mutex<VecDeque<(usize, Layout)>> = Mutex::new(VecDeque::new());
    // SAFETY: the memory is still allocated.
    unsafe { (*pointer).tag.store(DESTROYED, std::sync::atomic::Ordering::Release) };
    let mut graves = GRAVES.lock().unwrap_or_else(PoisonError::into_inner);
    graves.push_back((pointer as usize, Layout::new::<Tagged<T>>()));
    if graves.len() > GRAVES_MAX
        && let Some((address, layout)) = graves.pop_front()
    {
        // SAFETY: it was allocated by `Box` with this layout, and each is in the list once.
        unsafe { dealloc(address as *mut u8, layout) };
    }
}

/// A pointer to bytes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bytes(*const c_char);

impl Bytes {
    /// A pointer to bytes that are lent to C.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr().cast())
    }

    /// The pointer.
    #[inline]
    pub fn raw(self) -> *const c_char {
        self.0
    }

    /// The first `len` bytes. NULL is an error unless `len` is 0.
    #[inline]
    pub fn get<'a>(self, len: usize) -> Result<&'a [u8]> {
        match self.nullable(len)? {
            Some(bytes) => Ok(bytes),
            None if len == 0 => Ok(&[]),
            None => Err(null("bytes")),
        }
    }

    /// The first `len` bytes, or nothing for NULL.
    #[inline]
    pub fn nullable<'a>(self, len: usize) -> Result<Option<&'a [u8]>> {
        if self.0.is_null() {
            return Ok(None);
        }
        if isize::try_from(len).is_err() {
            return Err(Error::invalid_argument(format_args!(
                "{len} bytes are more than there can be"
            )));
        }
        // SAFETY: not NULL, and by the module's contract `len` bytes lie there during the call.
        Ok(Some(unsafe { std::slice::from_raw_parts(self.0.cast(), len) }))
    }
}

/// A pointer to a text that ends with a NUL byte.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// The text.
    pub fn get<'a>(self) -> Result<&'a CStr> {
        if self.0.is_null() {
            return Err(null("a text"));
        }
        // SAFETY: not NULL, and by the module's contract a text with a NUL byte.
        Ok(unsafe { CStr::from_ptr(self.0) })
    }

    /// The text, or nothing for NULL.
    pub fn nullable<'a>(self) -> Result<Option<&'a CStr>> {
        if self.0.is_null() { Ok(None) } else { self.get().map(Some) }
    }

    /// The text, which must be UTF-8.
    pub fn utf8<'a>(self) -> Result<&'a str> {
        let text = self.get()?;
        text.to_str().map_err(|_| {
            let text = text.to_string_lossy();
            Error::invalid_argument(format_args!("'{text}' is no UTF-8"))
        })
    }

    /// The path that it names.
    pub fn path<'a>(self) -> Result<&'a Path> {
        Ok(Path::new(OsStr::from_bytes(self.get()?.to_bytes())))
    }
}

/// A truth value as C's `unsigned char`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Flag(u8);

impl Flag {
    /// Whether it is not 0.
    pub fn get(self) -> Result<bool> {
        Ok(self.0 != 0)
    }
}

/// Where the caller has room for a value; NULL if it does not want it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Stores a value, over one that is not dropped.
    #[inline]
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: by the module's contract there is room for a value.
            unsafe { self.0.write(value) };
        }
    }

    /// Whether the caller wants a value.
    pub fn wants(self) -> bool {
        !self.0.is_null()
    }
}

/// An array that the caller reads from or writes to.
#[repr(transparent)]
pub struct Array<T>(*mut T);

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T: Copy> Array<T> {
    /// The first `len` elements. NULL is an error unless `len` is 0.
    pub fn slice<'a>(self, len: usize) -> Result<&'a [T]> {
        if len == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(null("an array"));
        }
        // SAFETY: not NULL, and by the module's contract `len` elements lie there.
        Ok(unsafe { std::slice::from_raw_parts(self.0, len) })
    }

    /// Stores the first elements.
    pub fn fill(self, elements: &[T]) {
        if !self.0.is_null() {
            // SAFETY: by the module's contract there is room for the elements.
            unsafe { std::ptr::copy(elements.as_ptr(), self.0, elements.len()) };
        }
    }

    /// Stores one element. NULL is a caller that does not want it.
    pub fn set(self, at: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: by the module's contract the array has an element `at`.
            unsafe { self.0.add(at).write(value) };
        }
    }
}

/// A length that C gives as an `int`; a negative one is 0.
pub fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// Keys from two arrays.
pub fn keys<'a>(list: Array<Bytes>, sizes: Array<usize>, len: usize) -> Result<Vec<&'a [u8]>> {
    list.slice(len)?.iter().zip(sizes.slice(len)?).map(|(key, size)| key.get(*size)).collect()
}

/// A copy of bytes that the caller frees.
pub fn copied(bytes: &[u8]) -> *mut c_char {
    // SAFETY: malloc may be called with any size; its result is checked.
    let copy = unsafe { libc::malloc(bytes.len().max(1)) }.cast::<u8>();
    assert!(!copy.is_null(), "out of memory: {} bytes", bytes.len());
    // SAFETY: the new memory has room for the bytes, and does not overlap them.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len()) };
    copy.cast()
}

/// A copy of a text, with a NUL byte, that the caller frees.
pub fn copied_text(text: impl AsRef<[u8]>) -> *mut c_char {
    let mut bytes = text.as_ref().to_vec();
    bytes.push(0);
    copied(&bytes)
}

/// An array of the C library's that the caller frees.
pub fn copied_array<T: Copy>(elements: &[T]) -> *mut T {
    let size = size_of_val(elements);
    // SAFETY: the elements are initialised, and plain pointers or numbers.
    copied(unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size) }).cast()
}

/// Frees texts that were copied for the caller, and their array.
pub fn free_texts(list: Array<*mut c_char>, len: usize) {
    for text in or_abort("a list of texts", list.slice(len)) {
        free(text.cast());
    }
    free_array(list);
}

/// Destroys objects that were made for the caller, and their array.
pub fn free_handles<T: Handle>(list: Array<*mut Tagged<T>>, len: usize) {
    for object in or_abort("a list of objects", list.slice(len)) {
        unmake(*object);
    }
    free_array(list);
}

/// Frees an array that was copied for the caller.
pub fn free_array<T>(list: Array<T>) {
    free(list.0.cast());
}

/// Frees what the C library allocated.
pub fn free(pointer: *mut c_void) {
    // SAFETY: by the module's contract it came from malloc, or is NULL.
    unsafe { libc::free(pointer) };
}

/// Where a function puts the text of an error.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct ErrorSlot(*mut *mut c_char);

/// What a function returns beside an error.
pub trait OnError {
    /// It.
    fn on_error() -> Self;
}

macro_rules! zero_on_error {
    ($($type:ty),*) => { $(impl OnError for $type {
        fn on_error() -> Self {
            Self::default()
        }
    })* };
}
zero_on_error!((), u8, i32, u32, u64, i64, usize);

impl<T> OnError for *mut T {
    fn on_error() -> Self {
        std::ptr::null_mut()
    }
}

impl<T> OnError for *const T {
    fn on_error() -> Self {
        std::ptr::null()
    }
}

impl ErrorSlot {
    /// Does `work`; what it fails with, or a panic, becomes a text in the slot.
    #[inline]
    pub fn guard<T: OnError>(self, work: impl FnOnce() -> Result<T>) -> T {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(value)) => return value,
            Ok(Err(error)) => self.set(error.as_ref()),
            Err(panic) => self.set(&panic_text(&*panic)),
        }
        T::on_error()
    }

    fn set(self, text: &str) {
        if self.0.is_null() {
            fail("errptr is NULL", text);
        }
        // SAFETY: by the module's contract it points to NULL or to a text that malloc allocated.
        let slot = unsafe { &mut *self.0 };
        free(slot.cast());
        *slot = copied_text(text);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("Operation aborted: panic: {}", text.unwrap_or("no message"))
}

/// The value, where a function has no place for an error; otherwise the end of the process.
#[inline]
pub fn or_abort<T>(function: &str, value: Result<T>) -> T {
    value.unwrap_or_else(|error| fail(function, error.as_ref()))
}

/// Ends the process with a message.
pub fn fail(place: &str, why: &str) -> ! {
    eprintln!("flagstone: {place}: {why}");
    std::process::abort()
}

/// What a program's callbacks are called with.
pub struct State {
    pointer: *mut c_void,
    destructor: Option<Destructor>,
}

/// Frees the state of callbacks.
pub type Destructor = extern "C-unwind" fn(*mut c_void);

// SAFETY: RocksDB calls callbacks from any thread, several at a time where the header does not say
// otherwise; a program that passes some is made for that.
unsafe impl Send for State {}
// SAFETY: as for `Send`.
unsafe impl Sync for State {}

impl State {
    /// What `destructor` frees when the last callback is gone.
    pub fn new(pointer: *mut c_void, destructor: Option<Destructor>) -> Self {
        Self { pointer, destructor }
    }

    /// The program's pointer.
    pub fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            calling("a destructor", || destructor(self.pointer));
        }
    }
}

/// Calls a callback. One that throws or panics ends the process.
pub fn calling<T>(what: &'static str, callback: impl FnOnce() -> T) -> T {
    struct Bomb(&'static str);
    impl Drop for Bomb {
        fn drop(&mut self) {
            fail(self.0, "the callback threw an exception or panicked");
        }
    }
    let bomb = Bomb(what);
    let value = callback();
    std::mem::forget(bomb);
    value
}

/// The bytes that a callback returned; nothing for NULL. They are read before `T` is returned.
pub fn returned<T>(pointer: *const c_char, len: usize, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
    Bytes(pointer).nullable(len).ok().flatten().map(read)
}

/// The name that a callback returns.
pub fn name(callback: extern "C-unwind" fn(*mut c_void) -> *const c_char, state: &State) -> String {
    let text = calling("a name callback", || callback(state.pointer()));
    match Text(text).nullable() {
        Ok(Some(name)) => name.to_string_lossy().into_owned(),
        _ => String::new(),
    }
}
