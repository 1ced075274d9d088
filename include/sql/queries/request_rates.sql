-- name: start_rate
-- A policy with a rate starts at it and stays under it; without one, nothing is limited until the store asks.
INSERT INTO s3_retention.request_rates (endpoint, bucket, prefix, keys_per_second)
VALUES (%(endpoint)s, %(bucket)s, %(prefix)s, %(max_rate)s)
ON CONFLICT (endpoint, bucket, prefix) DO UPDATE SET
    keys_per_second = excluded.keys_per_second,
    adjusted_at = s3_retention.clock()
WHERE coalesce(request_rates.keys_per_second > excluded.keys_per_second, TRUE);

-- name: reserve_keys
-- The turn of the next request: the seconds until then. The rate rises with time, and is lifted at last.
-- Every worker locks this row, for this transaction only. An hour bounds what a clock that jumps back costs.
UPDATE s3_retention.request_rates AS rates
SET
    keys_per_second = CASE
        WHEN
            %(max_rate)s::double precision IS NULL
            AND rates.keys_per_second
            + %(step)s * extract(EPOCH FROM greatest(clock.now - rates.adjusted_at, '0'))
            > %(free_rate)s THEN NULL
        ELSE least(
            %(max_rate)s::double precision,
            rates.keys_per_second
            + %(step)s * extract(EPOCH FROM greatest(clock.now - rates.adjusted_at, '0'))
        )
    END,
    adjusted_at = clock.now,
    reserved_at = greatest(least(rates.next_at, clock.now + interval '1 hour'), clock.now),
    next_at = greatest(least(rates.next_at, clock.now + interval '1 hour'), clock.now)
    + make_interval(secs => %(num_keys)s::double precision / rates.keys_per_second)
FROM (SELECT s3_retention.clock() AS now) AS clock
WHERE
    rates.endpoint = %(endpoint)s
    AND rates.bucket = %(bucket)s
    AND rates.prefix = %(prefix)s
    AND rates.keys_per_second IS NOT NULL
RETURNING extract(EPOCH FROM rates.reserved_at - clock.now)::double precision AS seconds;

-- name: slow_down
-- The store asked for less: half the rate, at most once a second, since many requests say so at once.
INSERT INTO s3_retention.request_rates (endpoint, bucket, prefix, keys_per_second, slowed_at)
VALUES (
    %(endpoint)s,
    %(bucket)s,
    %(prefix)s,
    least(%(max_rate)s::double precision, %(first_rate)s::double precision) / 2,
    s3_retention.clock()
)
ON CONFLICT (endpoint, bucket, prefix) DO UPDATE SET
    keys_per_second = greatest(
        coalesce(request_rates.keys_per_second, %(first_rate)s::double precision) / 2,
        %(min_rate)s::double precision
    ),
    adjusted_at = s3_retention.clock(),
    slowed_at = s3_retention.clock()
WHERE coalesce(request_rates.slowed_at < s3_retention.clock() - interval '1 second', TRUE);
