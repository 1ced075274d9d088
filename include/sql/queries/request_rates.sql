-- name: start_rate
-- A policy with a rate starts at it and stays under it; without one, nothing is limited until the store asks.
INSERT INTO s3_retention.request_rates (endpoint, bucket, prefix, keys_per_second)
VALUES (%(endpoint)s, %(bucket)s, %(prefix)s, %(max_rate)s)
ON CONFLICT (endpoint, bucket, prefix) DO UPDATE SET
    keys_per_second = excluded.keys_per_second,
    adjusted_at = greatest(request_rates.adjusted_at, s3_retention.clock())
WHERE coalesce(request_rates.keys_per_second > excluded.keys_per_second, TRUE);

-- name: reserve_keys
-- The turn of the next request: the seconds until then. The rate rises with time up to that of the policy;
-- where the policy has none, it is lifted at last, and nobody waits for more than an hour. Every worker locks
-- this row, for this transaction only. When a clock jumps back, the turns that were given go back with it.
WITH held AS (
    SELECT
        rates.*,
        s3_retention.clock() AS now
    FROM s3_retention.request_rates AS rates
    WHERE
        rates.endpoint = %(endpoint)s
        AND rates.bucket = %(bucket)s
        AND rates.prefix = %(prefix)s
        AND (rates.keys_per_second IS NOT NULL OR %(max_rate)s::double precision IS NOT NULL)
    FOR UPDATE
),

risen AS (
    SELECT
        held.now,
        least(
            %(max_rate)s::double precision,
            coalesce(held.keys_per_second, %(max_rate)s::double precision)
            + %(step)s * extract(EPOCH FROM greatest(held.now - held.adjusted_at, '0'))
        ) AS rate,
        CASE
            WHEN held.adjusted_at > held.now + interval '1 minute'
                THEN held.next_at - (held.adjusted_at - held.now)
            ELSE held.next_at
        END AS next_at
    FROM held
),

turn AS (
    SELECT
        risen.now,
        risen.rate,
        CASE
            WHEN %(max_rate)s::double precision IS NOT NULL THEN greatest(risen.next_at, risen.now)
            ELSE greatest(least(risen.next_at, risen.now + interval '1 hour'), risen.now)
        END AS starts_at
    FROM risen
)

UPDATE s3_retention.request_rates AS rates
SET
    keys_per_second = CASE
        WHEN %(max_rate)s::double precision IS NULL AND turn.rate > %(free_rate)s THEN NULL
        ELSE turn.rate
    END,
    adjusted_at = turn.now,
    reserved_at = turn.starts_at,
    next_at = turn.starts_at + make_interval(secs => %(num_keys)s::double precision / turn.rate)
FROM turn
WHERE
    rates.endpoint = %(endpoint)s
    AND rates.bucket = %(bucket)s
    AND rates.prefix = %(prefix)s
RETURNING extract(EPOCH FROM rates.reserved_at - rates.adjusted_at)::double precision AS seconds;

-- name: slow_down
-- The store asked for less: half the rate, at most once a second, since many requests say so at once. A rate
-- that is under the least one already is left as it is.
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
        least(coalesce(request_rates.keys_per_second, %(first_rate)s), %(max_rate)s::double precision) / 2,
        least(request_rates.keys_per_second, %(max_rate)s::double precision, %(min_rate)s::double precision)
    ),
    adjusted_at = greatest(request_rates.adjusted_at, s3_retention.clock()),
    slowed_at = s3_retention.clock()
WHERE coalesce(abs(extract(EPOCH FROM s3_retention.clock() - request_rates.slowed_at)) > 1, TRUE);
