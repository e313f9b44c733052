"""Words that several attacks say."""

BY_MANY = (
    "none promised: a learner profits from what holds for many persons, and counts of many are what a release is for; a promise is about "
    "one person's group by itself"
)
