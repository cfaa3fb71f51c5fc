// Makes databases with whatever release of RocksDB is on the class path, for scripts/releases.sh to compare.
//
// usage: java -cp ROCKSDBJNI_JAR MakeDatabases.java DIRECTORY [NAME...]
//
// DIRECTORY/features      one column family for each compression, filter, checksum, index, ... that the release has
// DIRECTORY/plain         two families with hardly an option set: its OPTIONS file is a fixture of the project
// DIRECTORY/wal-*         kinds of logs that the release has
// DIRECTORY/NAME.expected  what RocksDB's iterators returned, as `flagstone dump` prints it
//
// -Dwithout=FAMILY leaves one out that crashes the process.
//
// Only calls that releases 5.0 to 11 have in common are compiled against; options are given by their names, since their
// setters differ. What a release does not have is said on a line "without NAME: REASON" and left out.

import java.io.BufferedWriter;
import java.io.File;
import java.io.FileWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.rocksdb.BuiltinComparator;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.FlushOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

public class MakeDatabases {
    static final Set<String> WANTED = new TreeSet<>();
    static final Set<String> MISSING = new TreeSet<>();
    static final String DEFAULT = "default";
    static final String[] COMPRESSIONS = {"kNoCompression", "kSnappyCompression", "kZlibCompression", "kBZip2Compression",
        "kLZ4Compression", "kLZ4HCCompression", "kXpressCompression", "kZSTD", "kZSTDNotFinalCompression"};
    static final String[] CHECKSUMS = {"kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"};
    static final String[] FORMAT_VERSIONS = {"2", "3", "4", "5", "6", "7"};

    /** A column family: its options by name, and what is stored in it. */
    static class Family {
        final String name;
        final String mergeOperator;
        final boolean isReversed;
        final String[] options;
        ColumnFamilyHandle handle;

        Family(String name, String mergeOperator, boolean isReversed, String... options) {
            this.name = name;
            this.mergeOperator = mergeOperator;
            this.isReversed = isReversed;
            this.options = options;
        }

        static Family plain(String name, String... options) {
            return new Family(name, null, false, options);
        }

        /** With a table option (or several, separated by semicolons) and perhaps other options. */
        static Family table(String name, String table, String... others) {
            List<String> options = new ArrayList<>();
            Collections.addAll(options, others);
            options.add("block_based_table_factory={" + table + ";}");
            return plain(name, options.toArray(new String[0]));
        }

        ColumnFamilyDescriptor descriptor() {
            Properties properties = properties(options);
            ColumnFamilyOptions made = properties.isEmpty()
                ? new ColumnFamilyOptions()
                : ColumnFamilyOptions.getColumnFamilyOptionsFromProps(properties);
            if (made == null) {
                throw new IllegalArgumentException("an option or its value is not known");
            }
            if (mergeOperator != null) {
                made.setMergeOperatorName(mergeOperator);
            }
            if (isReversed) {
                made.setComparator(BuiltinComparator.REVERSE_BYTEWISE_COMPARATOR);
            }
            return new ColumnFamilyDescriptor(name.getBytes(StandardCharsets.UTF_8), made);
        }
    }

    static Properties properties(String... options) {
        Properties properties = new Properties();
        for (String option : options) {
            int equals = option.indexOf('=');
            properties.setProperty(option.substring(0, equals), option.substring(equals + 1));
        }
        return properties;
    }

    static List<Family> features() {
        List<Family> all = new ArrayList<>();
        all.add(new Family("append", "stringappend", false, "compression=kLZ4Compression"));
        all.add(new Family("add", "uint64add", false, "compression=kSnappyCompression"));
        all.add(new Family("max", "max", false));
        all.add(new Family("reversed", "stringappend", true));
        for (String compression : COMPRESSIONS) {
            all.add(Family.plain("compression-" + compression, "compression=" + compression));
        }
        all.add(Family.plain("dictionary", "compression=kZSTD", "compression_opts=-14:3:0:4096:16384"));
        all.add(Family.plain("bottommost", "compression=kLZ4Compression", "bottommost_compression=kZSTD"));
        all.add(Family.plain("per-level", "compression_per_level=kNoCompression:kLZ4Compression:kZSTD"));
        for (String checksum : CHECKSUMS) {
            all.add(Family.table("checksum-" + checksum, "checksum=" + checksum));
        }
        for (String version : FORMAT_VERSIONS) {
            String table = "format_version=" + version + ";filter_policy=bloomfilter:10:false";
            all.add(Family.table("format-" + version, table));
        }
        String prefix = "prefix_extractor=fixed:6";
        all.add(Family.table("bloom", "filter_policy=bloomfilter:10:false"));
        all.add(Family.table("bloom-of-blocks", "filter_policy=bloomfilter:10:true"));
        all.add(Family.table("bloom-prefix", "filter_policy=bloomfilter:9.5:false;whole_key_filtering=false", prefix));
        all.add(Family.table("bloom-capped", "filter_policy=bloomfilter:10:false", "prefix_extractor=capped:5"));
        all.add(Family.table("ribbon", "filter_policy=ribbonfilter:10"));
        all.add(Family.table("ribbon-experimental", "filter_policy=experimental_ribbon:10"));
        all.add(Family.table("partitioned", "filter_policy=bloomfilter:10:false;partition_filters=true;"
            + "index_type=kTwoLevelIndexSearch;metadata_block_size=256"));
        all.add(Family.table("partitioned-together", "filter_policy=bloomfilter:10:false;partition_filters=true;"
            + "index_type=kTwoLevelIndexSearch;metadata_block_size=256;decouple_partitioned_filters=false"));
        all.add(Family.table("index-hash", "index_type=kHashSearch", prefix));
        all.add(Family.table("index-first-key", "index_type=kBinarySearchWithFirstKey"));
        all.add(Family.table("index-shortest", "index_shortening=kShortenSeparatorsAndSuccessor"));
        all.add(Family.table("index-whole", "index_shortening=kNoShortening;index_block_restart_interval=4"));
        all.add(Family.table("index-whole-values", "enable_index_compression=false;block_restart_interval=1"));
        all.add(Family.table("data-hash", "data_block_index_type=kDataBlockBinaryAndHash;block_restart_interval=4"));
        all.add(Family.table("aligned", "block_align=true", "compression=kNoCompression"));
        all.add(Family.table("super-blocks", "super_block_alignment_size=16384"));
        all.add(Family.table("without-deltas", "use_delta_encoding=false"));
        all.add(Family.table("values-apart", "separate_key_value_in_data_block=true"));
        all.add(Family.plain("blobs", "enable_blob_files=true", "min_blob_size=100"));
        all.add(new Family("blobs-merged", "stringappend", false, "enable_blob_files=true", "min_blob_size=100",
            "blob_compression_type=kLZ4Compression"));
        all.add(Family.plain("blobs-collected", "enable_blob_files=true", "min_blob_size=0", "blob_compression_type=kZSTD",
            "enable_blob_garbage_collection=true", "blob_garbage_collection_age_cutoff=1.0"));
        all.add(Family.plain("blobs-later", "enable_blob_files=true", "min_blob_size=100", "blob_file_starting_level=1"));
        all.add(Family.plain("universal", "compaction_style=kCompactionStyleUniversal"));
        all.add(Family.plain("fifo", "compaction_style=kCompactionStyleFIFO"));
        all.add(Family.plain("mixed-compressions", "compression=kZSTD", "compression_manager=builtin:mixed"));
        all.add(Family.plain("times-kept", "preserve_internal_time_seconds=1000"));
        all.add(Family.plain("temperature", "last_level_temperature=kCold"));
        all.add(Family.plain("protected", "block_protection_bytes_per_key=8", "memtable_protection_bytes_per_key=8"));
        return all;
    }

    static List<Family> plain() {
        List<Family> all = new ArrayList<>();
        all.add(new Family("words", "stringappend", false, "compression=kLZ4Compression",
            "block_based_table_factory={filter_policy=bloomfilter:10:false;}", "enable_blob_files=true", "min_blob_size=100"));
        all.add(new Family("words", "stringappend", false, "compression=kLZ4Compression",
            "block_based_table_factory={filter_policy=bloomfilter:10:false;}"));
        return all;
    }

    public static void main(String[] arguments) throws Exception {
        RocksDB.loadLibrary();
        File directory = new File(arguments[0]);
        for (int index = 1; index < arguments.length; index++) {
            WANTED.add(arguments[index]);
        }
        make(directory, "features", features());
        make(directory, "plain", plain());
        make(directory, "wal-recycled", plain(), "recycle_log_file_num=2");
        make(directory, "wal-compressed", plain(), "wal_compression=kZSTD");
        make(directory, "wal-compressed-recycled", plain(), "wal_compression=kZSTD", "recycle_log_file_num=2");
        make(directory, "wal-tracked", plain(), "track_and_verify_wals=true");
    }

    static void make(File directory, String name, List<Family> families, String... dbOptions) throws Exception {
        if (!WANTED.isEmpty() && !WANTED.contains(name)) {
            return;
        }
        DBOptions options =
            dbOptions.length == 0 ? new DBOptions() : DBOptions.getDBOptionsFromProps(properties(dbOptions));
        if (options == null) {
            System.out.println("without " + name + ": an option or its value is not known");
            return;
        }
        options.setCreateIfMissing(true);
        Family first = Family.plain(DEFAULT);
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        String path = new File(directory, name).getPath();
        RocksDB db = RocksDB.open(options, path, Collections.singletonList(first.descriptor()), handles);
        first.handle = handles.get(0);
        List<Family> made = new ArrayList<>();
        made.add(first);
        String before = null;
        for (Family family : families) {
            // Of families of the same name the first one that can be had is made.
            if (family.name.equals(before)) {
                continue;
            }
            if (family.name.equals(System.getProperty("without"))) {
                System.out.println("without " + name + "/" + family.name + ": the release crashes");
                continue;
            }
            try {
                attempt(new File(directory, "attempt-" + name + "-" + family.name), family);
                family.handle = db.createColumnFamily(family.descriptor());
                made.add(family);
                before = family.name;
            } catch (IllegalArgumentException | RocksDBException refusal) {
                System.out.println("without " + name + "/" + family.name + ": " + refusal.getMessage());
            }
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (Family family : made) {
                fill(db, family, round);
            }
        }
        long keys = 0;
        try (BufferedWriter out = new BufferedWriter(new FileWriter(new File(directory, name + ".expected")))) {
            for (Family family : made) {
                keys += print(db, family, out);
            }
        }
        System.out.println("made " + name + ": " + made.size() + " families, " + keys + " keys");
        for (Family family : made) {
            family.handle.close();
        }
        db.close();
    }

    /** Writes and reads a table of that family in a database of its own: some releases take options and fail then. */
    static void attempt(File directory, Family family) throws RocksDBException {
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        Family tried = new Family(DEFAULT, family.mergeOperator, family.isReversed, family.options);
        ColumnFamilyDescriptor descriptor = tried.descriptor();
        try (DBOptions options = new DBOptions().setCreateIfMissing(true);
             RocksDB db = RocksDB.open(options, directory.getPath(), Collections.singletonList(descriptor), handles)) {
            try (ColumnFamilyHandle handle = handles.get(0); FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
                db.put(handle, key(0), new byte[200]);
                db.flush(flush, handle);
                if (tried.mergeOperator != null) {
                    db.merge(handle, key(0), key(1));
                    db.flush(flush, handle);
                }
                db.get(handle, key(0));
            }
        }
    }

    // The last round stays in the logs.
    static final int ROUNDS = 5;

    static void fill(RocksDB db, Family family, int round) throws Exception {
        ColumnFamilyHandle handle = family.handle;
        int from = round * 60;
        for (int number = from; number < from + 150; number++) {
            if (number % 11 != 3) {
                db.put(handle, key(number), value(family, number, round));
            }
        }
        if (round > 0) {
            for (int number = 0; number < from + 150; number += 7) {
                call(db, new String[] {"delete", "remove"}, handle, key(number));
            }
            // Written once, and no more.
            call(db, new String[] {"singleDelete"}, handle, single(round - 1));
            byte[] begin = key(from + 20);
            byte[] end = key(from + 31);
            call(db, new String[] {"deleteRange"}, handle, family.isReversed ? end : begin, family.isReversed ? begin : end);
        }
        db.put(handle, single(round), value(family, round, round));
        if (family.mergeOperator != null) {
            for (int number = 0; number < from + 160; number += 3) {
                db.merge(handle, key(number), operand(family, number, round));
            }
        }
        if (round + 1 < ROUNDS) {
            try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
                db.flush(flush, handle);
            }
        }
        if (round == 2) {
            db.compactRange(handle);
        }
    }

    static byte[] key(int number) {
        return String.format("key%05d", number).getBytes(StandardCharsets.UTF_8);
    }

    static byte[] single(int round) {
        return ("single" + round).getBytes(StandardCharsets.UTF_8);
    }

    static byte[] number(long number) {
        return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(number).array();
    }

    static byte[] value(Family family, int number, int round) {
        if ("uint64add".equals(family.mergeOperator)) {
            return number(number * 1000L + round);
        }
        StringBuilder text = new StringBuilder();
        for (int part = 0; part < 1 + number % 29; part++) {
            text.append("value ").append(number * 7919 % 1000).append(" of round ").append(round).append(", ");
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    static byte[] operand(Family family, int number, int round) {
        if ("uint64add".equals(family.mergeOperator)) {
            return number(1L << round);
        }
        return ("operand " + number + " of round " + round).getBytes(StandardCharsets.UTF_8);
    }

    static void call(RocksDB db, String[] names, Object... arguments) throws Exception {
        Class<?>[] types = new Class<?>[arguments.length];
        for (int index = 0; index < arguments.length; index++) {
            types[index] = arguments[index].getClass();
        }
        for (String name : names) {
            try {
                Method method = RocksDB.class.getMethod(name, types);
                method.invoke(db, arguments);
                return;
            } catch (NoSuchMethodException missing) {
                // The next name may be there.
            } catch (InvocationTargetException failure) {
                throw (Exception) failure.getCause();
            }
        }
        if (MISSING.add(names[0])) {
            System.out.println("without " + names[0] + ": the release has no such call");
        }
    }

    static long print(RocksDB db, Family family, BufferedWriter out) throws Exception {
        long keys = 0;
        try (RocksIterator iterator = db.newIterator(family.handle)) {
            iterator.seekToFirst();
            if (family.isReversed) {
                out.write(family.name + " comparator=rocksdb.ReverseBytewiseComparator\n");
            }
            for (; iterator.isValid(); iterator.next()) {
                out.write(family.name + " " + hex(iterator.key()) + " " + hex(iterator.value()) + "\n");
                keys++;
            }
            Method status = RocksIterator.class.getMethod("status");
            status.invoke(iterator);
        }
        return keys;
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) {
            text.append(String.format("%02x", one));
        }
        return text.toString();
    }
}
