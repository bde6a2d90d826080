//! Objects within what is mapped already: nothing is mapped or unmapped when one comes or goes.

use super::bitmap::Bitmap;
use super::{AllocError, Ask, Device, IovaAllocator, IovaRange};
use crate::space::{Space, SpaceError};
use lanemark_units::Iova;

/// Objects of one size in a mapping that stays.
///
/// A hundred and twenty-eight objects of 32 B that are mapped one by one take as many entries of an IOMMU's table;
/// in one page they take one. And where mapping is a call of the operating system, as with VFIO, it is made once.
///
/// ```
/// use lanemark_dma::{Pool, IovaRange};
/// use lanemark_units::Iova;
/// // The page of a mapping, as `mapping.range()` says it.
/// let mut pool = Pool::over(IovaRange { at: Iova(0x1_0000), len_bytes: 4096 }, 32)?;
/// assert_eq!(pool.free_objects(), 128);
/// let object = pool.take()?;
/// assert_eq!((object.at, pool.offset(object)), (Iova(0x1_0000), Some(0)));
/// pool.give_back(object)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pool {
    space: Space,
    /// The first object's address.
    first: u64,
    free: Bitmap,
}

impl Pool {
    /// The most objects of a pool.
    pub const MOST: u64 = 1 << 24;

    /// Objects of `object_bytes`, each at a multiple of it, in `range`.
    ///
    /// # Errors
    /// [`PoolError`] where the size is no power of two, no object fits, or more than [`Pool::MOST`] would.
    pub fn over(range: IovaRange, object_bytes: u64) -> Result<Pool, PoolError> {
        let last = range.len_bytes.checked_sub(1).and_then(|more| range.at.0.checked_add(more));
        let last = last.ok_or(PoolError::Range { range })?;
        let space = Space::between(range.at, Iova(last), object_bytes)?;
        let objects = space.free_pages();
        if objects > Pool::MOST {
            return Err(AllocError::TooMany { what: "objects", wanted: objects, most: Pool::MOST }.into());
        }
        let first = space.free_spans().first().map_or(0, |span| span.first) << space.page_bits();
        let mut free = Bitmap::none_free(objects as usize);
        for object in 0..objects as usize {
            free.put(object);
        }
        Ok(Pool { space, first, free })
    }

    /// How many objects are free.
    #[must_use]
    pub fn free_objects(&self) -> u64 {
        self.free.free()
    }

    /// The lowest object that is free.
    ///
    /// # Errors
    /// [`AllocError::Exhausted`] where none is.
    #[inline]
    pub fn take(&mut self) -> Result<IovaRange, AllocError> {
        let len_bytes = self.space.page_bytes();
        let object = self
            .free
            .take_lowest()
            .ok_or_else(|| Ask::bytes(Device::default(), len_bytes).exhausted(len_bytes, 0, 0))?;
        Ok(IovaRange { at: Iova(self.first + ((object as u64) << self.space.page_bits())), len_bytes })
    }

    /// An object comes back.
    ///
    /// # Errors
    /// [`AllocError::NotOut`] where it is none, or not out.
    #[inline]
    pub fn give_back(&mut self, object: IovaRange) -> Result<(), AllocError> {
        let offset = object.at.0.wrapping_sub(self.first);
        let is_object = object.len_bytes == self.space.page_bytes() && offset & (object.len_bytes - 1) == 0;
        let number = (offset >> self.space.page_bits()) as usize;
        if is_object && self.free.contains(number) && self.free.put(number) {
            Ok(())
        } else {
            Err(AllocError::NotOut { range: object })
        }
    }

    /// Where an object lies in the pool, in bytes from its first object; `None` for what is not in it. The host
    /// finds it as far into the memory that is mapped.
    #[must_use]
    pub fn offset(&self, object: IovaRange) -> Option<u64> {
        self.space.contains(object.at, object.len_bytes).then(|| object.at.0 - self.first)
    }
}

/// Why there is no such pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// Nothing, or beyond the last address.
    #[error("a pool over {range}: there are no such addresses")]
    Range {
        /// What was asked for.
        range: IovaRange,
    },
    /// The size of its objects is none, or none fits.
    #[error("a pool's objects are its pages: {0}")]
    Objects(#[from] SpaceError),
    /// Too many.
    #[error(transparent)]
    Alloc(#[from] AllocError),
}

impl IovaAllocator for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn longest_bytes(&self) -> u64 {
        self.space.page_bytes()
    }

    fn alloc(&mut self, ask: Ask) -> Result<IovaRange, AllocError> {
        let wanted = super::Pages::of(ask, self.space.page_bits(), self.longest_bytes())?;
        if wanted.align > 1 {
            return Err(AllocError::Align { align_bytes: ask.align.bytes(), most_bytes: self.longest_bytes() });
        }
        self.take()
    }

    fn free(&mut self, _: Device, range: IovaRange) -> Result<(), AllocError> {
        self.give_back(range)
    }
}
